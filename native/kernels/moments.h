// Count, mean and sum of squared deviations of each column over the rows of weight above 0, merged into share_c3
// (Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances, 1979).
// One pass, shifted by the first row so that squares of small deviations from a large mean are not lost.
#pragma once
#include "base/kernel.h"

template <class V>
ST_INLINE void moments_add(V x, V shift, V &linear, V &square) {
    V d = x - shift;
    linear += d;
    square = fma(d, d, square);
}

// `count` rows whose deviations from `shift` sum to `linear`, and their squares to `square`, into one column's share.
ST_INLINE void moments_merge(f64 count, f64 shift, f64 linear, f64 square, f64 *share_3) {
    f64 offset = linear / count, squares = larger(square - linear * offset, 0.0), total = share_3[0] + count;
    f64 delta = shift + offset - share_3[1];
    share_3[2] += squares + delta * delta * (share_3[0] * count / total);
    share_3[1] += delta * (count / total);
    share_3[0] = total;
}

#if ST_CUDA   // a thread a column
ST_KERNEL void moments(i64 rows, i64 columns, const f32 *x_rc, const f32 *weight_r, f64 *share_c3) {
    ST_FOR(c, columns) {
        f64 shift = 0, linear = 0, square = 0, count = 0;
        for (i64 r = 0; r < rows; ++r) {
            if (!(weight_r[r] > 0)) continue;
            if (count == 0) shift = x_rc[r * columns + c];
            count += 1;
            moments_add<f64>(x_rc[r * columns + c], shift, linear, square);
        }
        if (count > 0) moments_merge(count, shift, linear, square, share_c3 + 3 * c);
    }
}
#else   // columns in the lanes
// From the first row of weight above 0: `vectors` vectors of columns, the last of them `last` wide.
template <int vectors>
void moments_of_vectors(i64 rows, i64 columns, const f32 *x, int last, const f32 *weight_r, f64 *share_c3) {
    constexpr int halves = 2 * vectors, half_lanes = vector_lanes / 2;
    Doubles shift[halves], linear[halves], square[halves], wide[halves];
    ST_UNROLL for (int v = 0; v < vectors; ++v)
        to_doubles(load_lanes(x + v * vector_lanes, v == vectors - 1 ? last : vector_lanes), shift + 2 * v);
    ST_UNROLL for (int h = 0; h < halves; ++h) linear[h] = square[h] = Doubles{};
    i64 count = 0;
    for (i64 r = 0; r < rows; ++r, x += columns) {
        if (!(weight_r[r] > 0)) continue;
        ++count;
        ST_UNROLL for (int v = 0; v < vectors; ++v)
            to_doubles(load_lanes(x + v * vector_lanes, v == vectors - 1 ? last : vector_lanes), wide + 2 * v);
        ST_UNROLL for (int h = 0; h < halves; ++h) moments_add(wide[h], shift[h], linear[h], square[h]);
    }
    f64 shifts[halves * half_lanes], linears[halves * half_lanes], squares[halves * half_lanes];
    ST_UNROLL for (int h = 0; h < halves; ++h) {
        store(shifts + h * half_lanes, shift[h]);
        store(linears + h * half_lanes, linear[h]);
        store(squares + h * half_lanes, square[h]);
    }
    int width = (vectors - 1) * vector_lanes + last;
    for (int c = 0; c < width; ++c)
        moments_merge(static_cast<f64>(count), shifts[c], linears[c], squares[c], share_c3 + 3 * c);
}

ST_KERNEL void moments(i64 rows, i64 columns, const f32 *x_rc, const f32 *weight_r, f64 *share_c3) {
    i64 first = 0;
    while (first < rows && !(weight_r[first] > 0)) ++first;
    if (first == rows) return;
    x_rc += first * columns;
    weight_r += first;
    rows -= first;
    for (i64 c = 0; c < columns; c += 2 * vector_lanes) {
        i64 left = columns - c;
        if (left > vector_lanes) {
            int last = static_cast<int>(smaller<i64>(left - vector_lanes, vector_lanes));
            moments_of_vectors<2>(rows, columns, x_rc + c, last, weight_r, share_c3 + 3 * c);
        } else {
            moments_of_vectors<1>(rows, columns, x_rc + c, static_cast<int>(left), weight_r, share_c3 + 3 * c);
        }
    }
}
#endif
ST_EXPORT(moments)
