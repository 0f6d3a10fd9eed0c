// One category column as `dim` columns of the input matrix from `at` on: x_rw[r, at + d] = table_bd[bucket of r, d].
#pragma once
#include "base/kernel.h"

ST_KERNEL void embedding_forward(i64 rows, i64 columns, i64 column, i64 buckets, i64 dim, i64 width, i64 at,
                                 const i32 *categories_rc, const f32 *table_bd, f32 *x_rw) {
    by_dim(dim, [&](i64 dim) ST_LAMBDA {
        auto row = [&](i64 r) ST_LAMBDA {
            return table_bd + embedding_bucket(categories_rc, r, columns, column, buckets) * dim;
        };
        ST_ROWS(r, rows) {
            fetch_ahead(r, rows, [&](i64 later) ST_LAMBDA { fetch_row(row(later), dim); });
            const f32 *from = row(r);
            f32 *to = x_rw + r * width + at;
            ST_LANES(d, dim) to[d] = from[d];
        }
    });
}
ST_EXPORT(embedding_forward)

// lead_r[r]: the first row of the batch with the bucket of row r, -1 for weight 0. seen_s: memory for FirstSeen.
ST_KERNEL void embedding_lead(i64 rows, i64 columns, i64 column, i64 buckets, i64 slots,
                              const i32 *categories_rc, const f32 *weight_r, i64 *seen_s, i32 *lead_r) {
    (void)slots;
#if ST_CUDA   // rows look for themselves; the host's table makes it linear
    (void)seen_s;
    ST_FOR(r, rows) {
        auto bucket = [&](i64 row) { return embedding_bucket(categories_rc, row, columns, column, buckets); };
        i64 q = 0;
        while (q < r && !(weight_r[q] > 0 && bucket(q) == bucket(r))) ++q;
        lead_r[r] = weight_r[r] > 0 ? static_cast<i32>(q) : -1;
    }
#else
    look_at_rows(rows, nullptr, weight_r,
                 [&](i64 r) { return embedding_bucket(categories_rc, r, columns, column, buckets); }, seen_s, lead_r);
#endif
}
ST_EXPORT(embedding_lead)

// gradient_rd of a leading row: the sum of dx over the rows it leads, in row order and in double; other rows are left
// as they are.
ST_KERNEL void embedding_gradient(i64 rows, i64 dim, i64 width, i64 at, const f32 *dx_rw, const i32 *lead_r,
                                  f64 *gradient_rd) {
#if ST_CUDA
    ST_FOR(e, rows * dim) {
        i64 r = e / dim, d = e % dim;
        if (lead_r[r] == r) {
            f64 total = dx_rw[r * width + at + d];
            for (i64 q = r + 1; q < rows; ++q)
                if (lead_r[q] == r) total += dx_rw[q * width + at + d];
            gradient_rd[e] = total;
        }
    }
#else
    by_dim(dim, [&](i64 dim) ST_LAMBDA {
        for (i64 r = 0; r < rows; ++r) {
            if (lead_r[r] < 0) continue;
            f64 *to = gradient_rd + lead_r[r] * dim;
            const f32 *from = dx_rw + r * width + at;
            if (lead_r[r] == r)
                ST_FOR(d, dim) to[d] = from[d];
            else
                ST_FOR(d, dim) to[d] += from[d];
        }
    });
#endif
}
ST_EXPORT(embedding_gradient)
