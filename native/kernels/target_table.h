// Of each bucket of a category the weight of its rows and their weighted label: sums_b2; of all rows weight, weighted
// label and weighted square: sums_3.
#pragma once
#include "base/kernel.h"

// The rows of weight above 0 of a batch, added in row order.
ST_KERNEL void target_add(i64 rows, i64 columns, i64 column, i64 buckets, const i32 *categories_rc,
                          const f32 *label_r, const f32 *weight_r, f64 *sums_b2) {
    auto bucket_of = [&](i64 r) { return embedding_bucket(categories_rc, r, columns, column, buckets); };
#if ST_CUDA   // the first row of a bucket adds all of them
    ST_FOR(r, rows) {
        const i64 bucket = bucket_of(r);
        bool leads = weight_r[r] > 0;
        for (i64 q = 0; leads && q < r; ++q) leads = !(weight_r[q] > 0 && bucket_of(q) == bucket);
        if (!leads) continue;
        f64 *to = sums_b2 + 2 * bucket, weight = to[0], sum = to[1];
        for (i64 q = r; q < rows; ++q) {
            if (!(weight_r[q] > 0) || bucket_of(q) != bucket) continue;
            weight += f64(weight_r[q]);
            sum += f64(weight_r[q]) * label_r[q];
        }
        to[0] = weight;
        to[1] = sum;
    }
#else
    for (i64 r = 0; r < rows; ++r) {
        if (!(weight_r[r] > 0)) continue;
        f64 *to = sums_b2 + 2 * bucket_of(r);
        to[0] += f64(weight_r[r]);
        to[1] += f64(weight_r[r]) * label_r[r];
    }
#endif
}
ST_EXPORT(target_add)

ST_KERNEL void target_add_all(i64 rows, const f32 *label_r, const f32 *weight_r, f64 *sums_3) {
    ST_ROWS(once, 1) {
        auto weighted = [&](i64 r, f64 value) { return weight_r[r] > 0 ? f64(weight_r[r]) * value : 0.0; };
        const f64 weight = sum<f64>(rows, [&](i64 r) { return weighted(r, 1); });
        const f64 label = sum<f64>(rows, [&](i64 r) { return weighted(r, label_r[r]); });
        const f64 square = sum<f64>(rows, [&](i64 r) { return weighted(r, f64(label_r[r]) * label_r[r]); });
        ST_FIRST_LANE {
            sums_3[0] += weight;
            sums_3[1] += label;
            sums_3[2] += square;
        }
    }
}
ST_EXPORT(target_add_all)

// x_rw[r, at]: how far the label's mean over the rows of row r's bucket, and `prior` more of all rows' mean, lies from
// that mean, in the label's deviations; 0 where nothing was seen, or the label never varied.
ST_KERNEL void target_value(i64 rows, i64 columns, i64 column, i64 buckets, i64 width, i64 at,
                            const i32 *categories_rc, const f64 *sums_b2, const f64 *all_3, f64 prior, f32 *x_rw) {
    const f64 known = all_3[0] > 0 ? all_3[0] : 1.0, mean = all_3[1] / known;
    const f64 variance = all_3[2] / known - mean * mean;
    const f64 scale = all_3[0] > 0 && variance > mean * mean * 1e-12 ? 1 / sqrt(variance) : 0.0;
    ST_FOR(r, rows) {
        const f64 *seen = sums_b2 + 2 * embedding_bucket(categories_rc, r, columns, column, buckets);
        const f64 total = seen[0] + prior;
        x_rw[r * width + at] = static_cast<f32>(total > 0 ? (seen[1] - mean * seen[0]) / total * scale : 0.0);
    }
}
ST_EXPORT(target_value)
