// Count, mean and sum of squared deviations of each column over the rows of weight above 0, merged into share_c3
// (Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances, 1979).
// One pass, shifted by the first row so that squares of small deviations from a large mean are not lost.
#pragma once
#include "base/kernel.h"

// Columns first to first + W - 1; those before `fresh` were merged already (W may overlap its neighbour).
template <int W>
ST_INLINE void moments_group(i64 rows, i64 columns, i64 first, i64 fresh, const f32 *x_rc, const f32 *weight_r,
                             f64 *share_c3) {
    f64 shift[W], linear[W] = {}, square[W] = {}, count = 0;
    for (i64 r = 0; r < rows; ++r) {
        if (!(weight_r[r] > 0)) continue;
        const f32 *x = x_rc + r * columns + first;
        if (count == 0)
            for (int c = 0; c < W; ++c) shift[c] = x[c];
        count += 1;
        for (int c = 0; c < W; ++c) {
            f64 d = x[c] - shift[c];
            linear[c] += d;
            square[c] = fma(d, d, square[c]);
        }
    }
    if (count == 0) return;
    for (int c = 0; c < W; ++c) {
        if (first + c < fresh) continue;
        f64 *share = share_c3 + 3 * (first + c);
        f64 offset = linear[c] / count, squares = larger(square[c] - linear[c] * offset, 0.0), total = share[0] + count;
        f64 delta = shift[c] + offset - share[1];
        share[2] += squares + delta * delta * (share[0] * count / total);
        share[1] += delta * (count / total);
        share[0] = total;
    }
}

template <int W>
ST_INLINE void moments_groups(i64 rows, i64 columns, const f32 *x_rc, const f32 *weight_r, f64 *share_c3) {
    for (i64 fresh = 0; fresh < columns; fresh += W)
        moments_group<W>(rows, columns, smaller(fresh, columns - W), fresh, x_rc, weight_r, share_c3);
}

ST_KERNEL void moments(i64 rows, i64 columns, const f32 *x_rc, const f32 *weight_r, f64 *share_c3) {
#if ST_CUDA   // a thread a column; the host takes neighbours together to fill its vectors: 12 times as fast
    ST_FOR(c, columns) moments_group<1>(rows, columns, c, c, x_rc, weight_r, share_c3);
#else
    if (columns >= 16) return moments_groups<16>(rows, columns, x_rc, weight_r, share_c3);
    if (columns >= 4) return moments_groups<4>(rows, columns, x_rc, weight_r, share_c3);
    moments_groups<1>(rows, columns, x_rc, weight_r, share_c3);
#endif
}
ST_EXPORT(moments)
