// As bag.h, but of each column the largest: x_rw[r, at + d] = max over the entries e of row r of scale_e[e] *
// table_bd[index_e[e], d], 0 of a row without entries. winner_rd: which entry it is, of equal ones the first; else -1.
#pragma once
#include "base/kernel.h"

ST_KERNEL void bag_max_forward(i64 rows, i64 entries, i64 buckets, i64 dim, i64 width, i64 at, const i32 *ends_r,
                               const i32 *index_e, const f32 *scale_e, const f32 *table_bd, f32 *x_rw,
                               i32 *winner_rd) {
    ST_ROWS(r, rows) {
        const i64 from = first_entry(ends_r, r);
        f32 *best = x_rw + r * width + at;
        i32 *winner = winner_rd + r * dim;
        ST_LANES(d, dim) {
            best[d] = 0;
            winner[d] = -1;
        }
        for (i64 e = from; e < ends_r[r]; ++e) {
            const f32 *row = table_bd + embedding_bucket(index_e, e, 1, 0, buckets) * dim;
            const f32 scale = scale_e ? scale_e[e] : 1.0f;
            ST_LANES(d, dim) {
                const f32 value = scale * row[d];
                const bool better = e == from || value > best[d];
                best[d] = better ? value : best[d];
                winner[d] = better ? static_cast<i32>(e) : winner[d];
            }
        }
    }
}
ST_EXPORT(bag_max_forward)

// gradient_ed of a leading entry (bag_lead): the sum over the entries it leads of scale_e dx of their row, in columns
// that they have won, in their order and in double; other entries are left as they are.
ST_KERNEL void bag_max_gradient(i64 rows, i64 entries, i64 dim, i64 width, i64 at, const i32 *ends_r,
                                const f32 *scale_e, const f32 *dx_rw, const i32 *winner_rd, const i32 *lead_e,
                                f64 *gradient_ed) {
    auto told = [&](i64 r, i64 e, i64 d) {
        const f64 scale = scale_e ? static_cast<f64>(scale_e[e]) : 1.0;
        return winner_rd[r * dim + d] == e ? scale * dx_rw[r * width + at + d] : 0.0;
    };
    ST_ROWS(r, rows) {
        for (i64 e = first_entry(ends_r, r); e < ends_r[r]; ++e) {
#if ST_CUDA   // a leading entry looks for those it leads
            if (lead_e[e] != e) continue;
            ST_LANES(d, dim) {
                f64 total = 0;
                for (i64 q = r; q < rows; ++q)
                    for (i64 other = larger(e, first_entry(ends_r, q)); other < ends_r[q]; ++other)
                        if (lead_e[other] == e) total += told(q, other, d);
                gradient_ed[e * dim + d] = total;
            }
#else
            if (lead_e[e] < 0) continue;
            f64 *to = gradient_ed + lead_e[e] * dim;
            ST_LANES(d, dim) to[d] = (lead_e[e] == e ? 0.0 : to[d]) + told(r, e, d);
#endif
        }
    }
}
ST_EXPORT(bag_max_gradient)
