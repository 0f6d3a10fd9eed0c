// A bag of table rows for each row of the batch, as `dim` columns of a matrix from `at` on: x_rw[r, at + d] is the sum,
// over the row's entries in their order, of scale_e[e] * table_bd[index_e[e], d], with `mean` over their number; with
// `adds` on top of what stands there. Without scales they are 1. Row r's entries end at ends_r[r]; sums are double.
#pragma once
#include "base/kernel.h"

ST_INLINE f64 bag_share(i64 count, i32 mean) { return mean && count > 1 ? 1.0 / static_cast<f64>(count) : 1.0; }
ST_INLINE f64 bag_scale(const f32 *scale_e, i64 e) { return scale_e ? static_cast<f64>(scale_e[e]) : 1.0; }

ST_KERNEL void bag_forward(i64 rows, i64 entries, i64 buckets, i64 dim, i64 width, i64 at, const i32 *ends_r,
                           const i32 *index_e, const f32 *scale_e, const f32 *table_bd, i32 mean, i32 adds,
                           f32 *x_rw) {
    ST_ROWS(r, rows) {
        const i64 from = first_entry(ends_r, r), end = ends_r[r];
        const f64 share = bag_share(end - from, mean);
        f32 *to = x_rw + r * width + at;
#if ST_CUDA
        ST_LANES(d, dim) {
            f64 total = 0;
            for (i64 e = from; e < end; ++e)
                total += bag_scale(scale_e, e) * table_bd[embedding_bucket(index_e, e, 1, 0, buckets) * dim + d];
            const f32 sum = static_cast<f32>(total * share);
            to[d] = adds ? to[d] + sum : sum;
        }
#else   // an entry's numbers together, as they lie
        const i64 turns = entry_count(rows, ends_r);
        auto row = [&](i64 e) ST_LAMBDA { return table_bd + embedding_bucket(index_e, e, 1, 0, buckets) * dim; };
        if (dim == 1) {   // a linear model's weights
            f64 total = 0;
            for (i64 e = from; e < end; ++e) {
                fetch_ahead(e, turns, [&](i64 later) ST_LAMBDA { fetch_row(row(later), 1); });
                total += bag_scale(scale_e, e) * *row(e);
            }
            const f32 sum = static_cast<f32>(total * share);
            to[0] = adds ? to[0] + sum : sum;
            continue;
        }
        constexpr i64 together = 16;
        for (i64 first = 0; first < dim; first += together) {
            const i64 count = smaller(together, dim - first);
            f64 totals[together] = {};
            for (i64 e = from; e < end; ++e) {
                fetch_ahead(e, turns, [&](i64 later) ST_LAMBDA { fetch_row(row(later) + first, count); });
                const f32 *its = row(e) + first;
                const f64 scale = bag_scale(scale_e, e);
                for (i64 d = 0; d < count; ++d) totals[d] += scale * its[d];
            }
            for (i64 d = 0; d < count; ++d) {
                const f32 sum = static_cast<f32>(totals[d] * share);
                to[first + d] = adds ? to[first + d] + sum : sum;
            }
        }
#endif
    }
}
ST_EXPORT(bag_forward)

// lead_e[e]: the first entry of the batch with the index of entry e, -1 in rows of weight 0. seen_s: memory for
// FirstSeen.
ST_KERNEL void bag_lead(i64 rows, i64 entries, i64 buckets, i64 slots, const i32 *ends_r, const i32 *index_e,
                        const f32 *weight_r, i64 *seen_s, i32 *lead_e) {
    (void)slots;
#if ST_CUDA   // entries look for themselves; the host's table makes it linear
    (void)seen_s;
    ST_ROWS(r, rows) {
        auto bucket = [&](i64 e) { return embedding_bucket(index_e, e, 1, 0, buckets); };
        for (i64 e = first_entry(ends_r, r) + threadIdx.x; e < ends_r[r]; e += 32) {
            i64 found = -1;
            for (i64 q = 0; weight_r[r] > 0 && q <= r && found < 0; ++q)
                for (i64 at = first_entry(ends_r, q); weight_r[q] > 0 && at < ends_r[q] && at <= e; ++at)
                    if (bucket(at) == bucket(e)) {
                        found = at;
                        break;
                    }
            lead_e[e] = static_cast<i32>(found);
        }
    }
#else
    look_at_rows(rows, ends_r, weight_r, [&](i64 e) { return embedding_bucket(index_e, e, 1, 0, buckets); }, seen_s,
                 lead_e);
#endif
}
ST_EXPORT(bag_lead)

// gradient_ed of a leading entry: the sum over the entries it leads of what dx of their row says to them, in their
// order and in double; other entries are left as they are.
ST_KERNEL void bag_gradient(i64 rows, i64 entries, i64 dim, i64 width, i64 at, const i32 *ends_r, const f32 *scale_e,
                            const f32 *dx_rw, const i32 *lead_e, i32 mean, f64 *gradient_ed) {
#if ST_CUDA
    ST_ROWS(r, rows) {
        for (i64 e = first_entry(ends_r, r); e < ends_r[r]; ++e) {
            if (lead_e[e] != e) continue;
            ST_LANES(d, dim) {
                f64 total = 0;
                for (i64 q = r; q < rows; ++q) {
                    const i64 from = first_entry(ends_r, q);
                    const f64 share = bag_share(ends_r[q] - from, mean);
                    for (i64 other = larger(from, e); other < ends_r[q]; ++other)
                        if (lead_e[other] == e) total += bag_scale(scale_e, other) * share * dx_rw[q * width + at + d];
                }
                gradient_ed[e * dim + d] = total;
            }
        }
    }
#else
    for (i64 r = 0; r < rows; ++r) {
        const i64 from = first_entry(ends_r, r), end = ends_r[r];
        const f64 share = bag_share(end - from, mean);
        const f32 *dx = dx_rw + r * width + at;
        if (dim == 1) {
            for (i64 e = from; e < end && lead_e[from] >= 0; ++e) {
                f64 *to = gradient_ed + lead_e[e];
                const i64 leads = -i64{lead_e[e] == e};   // no branch: then -0 stands there, and -0 + x is x
                const f64 before = from_bits((bits_of(*to) & ~leads) | leads << 63);
                *to = before + bag_scale(scale_e, e) * share * dx[0];
            }
            continue;
        }
        for (i64 e = from; e < end; ++e) {
            if (lead_e[e] < 0) continue;
            const f64 scale = bag_scale(scale_e, e) * share;
            f64 *to = gradient_ed + lead_e[e] * dim;
            if (lead_e[e] == e)
                ST_FOR(d, dim) to[d] = scale * dx[d];
            else
                ST_FOR(d, dim) to[d] += scale * dx[d];
        }
    }
#endif
}
ST_EXPORT(bag_gradient)
