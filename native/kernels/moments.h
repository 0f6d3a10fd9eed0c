// What a batch adds to a share of the columns' moments (base/moments.h), over the rows of weight above 0: count, mean
// and sum of squared deviations of the values held between low_c and high_c, and of those as they came; how many lay
// outside, and how many the model saw cut. mean_c, scale_c and clip_c are those it was standardised with. A value that
// is missing (NaN) counts for nothing.
// Merged by Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances, 1979;
// one pass, shifted by the first row so that squares of small deviations from a large mean are not lost.
#pragma once
#include "base/kernel.h"

template <class T>
struct ColumnLimits {
    T mean;
    f32 scale, clip;
    T low, high;
};

template <class V>
ST_INLINE void moments_add(V x, V shift, V &linear, V &square) {
    V d = x - shift;
    linear += d;
    square = fma(d, d, square);
}

// `count` values whose deviations from `shift` sum to `linear`, and their squares to `square`.
ST_INLINE void moments_merge(f64 count, f64 shift, f64 linear, f64 square, f64 &to_count, f64 &to_mean,
                             f64 &to_squares) {
    f64 offset = linear / count;
    merge_moments(count, shift + offset, larger(square - linear * offset, 0.0), to_count, to_mean, to_squares);
}

template <class T>
ST_INLINE bool is_cut(T x, ColumnLimits<T> column) {
    T z = (x - column.mean) * column.scale;
    return z > column.clip || z < -column.clip;
}

// One column, with values outside its limits or without.
template <class T>
ST_INLINE void moments_of_column(i64 rows, i64 columns, const T *x, const f32 *weight_r, ColumnLimits<T> column,
                                 ColumnMoments *share) {
    f64 shift = 0, linear = 0, square = 0, raw_shift = 0, raw_linear = 0, raw_square = 0;
    f64 count = 0, raw_count = share->count;
    for (i64 r = 0; r < rows; ++r) {
        T raw = x[r * columns];
        if (!(weight_r[r] > 0) || raw != raw) continue;
        T held = raw < column.low ? column.low : raw > column.high ? column.high : raw;
        if (count == 0) { shift = held; raw_shift = raw; }
        count += 1;
        moments_add<f64>(held, shift, linear, square);
        moments_add<f64>(raw, raw_shift, raw_linear, raw_square);
        if (is_cut(raw, column)) share->clipped += 1;
        if (raw == held) continue;
        share->outside += 1;
        share->least = nearer(abs(f64(raw) - column.mean), share->least);
    }
    if (count == 0) return;
    moments_merge(count, raw_shift, raw_linear, raw_square, raw_count, share->raw_mean, share->raw_squares);
    moments_merge(count, shift, linear, square, share->count, share->mean, share->squares);
}

#if ST_CUDA   // a thread a column
template <class T>
ST_KERNEL void moments(i64 rows, i64 columns, const T *x_rc, const f32 *weight_r, const T *mean_c, const f32 *scale_c,
                       const f32 *clip_c, const T *low_c, const T *high_c, f64 *share_cm) {
    ST_FOR(c, columns) {
        const ColumnLimits<T> limits{mean_c[c], scale_c[c], clip_c[c], low_c[c], high_c[c]};
        moments_of_column(rows, columns, x_rc + c, weight_r, limits, reinterpret_cast<ColumnMoments *>(share_cm) + c);
    }
}
#else   // columns in the lanes, and once more those that had a value outside, or missing
template <class T>
struct LimitArrays {
    const T *mean;
    const f32 *scale, *clip;
    const T *low, *high;
    ColumnLimits<T> operator[](i64 c) const { return {mean[c], scale[c], clip[c], low[c], high[c]}; }
};

// From the first row of weight above 0: `vectors` vectors of columns from column `c` on, the last of them `last` wide.
template <int vectors, class T>
void moments_of_vectors(i64 rows, i64 columns, i64 c, const T *x_rc, int last, const f32 *weight_r,
                        LimitArrays<T> limits, ColumnMoments *share) {
    typedef LanesOf<T> Lanes;
    typedef decltype(Lanes{} < Lanes{}) Counts;
    constexpr int each = lanes_of<T>, parts = sizeof(T) == 4 ? 2 : 1;   // of Doubles
    constexpr int halves = parts * vectors, half_lanes = vector_lanes / 2, lanes_held = vectors * each;
    auto width_of = [&](int v) { return v == vectors - 1 ? last : each; };
    Lanes mean[vectors], scale[vectors], clip[vectors], low[vectors], high[vectors];
    Counts outside[vectors], cut[vectors];
    Doubles shift[halves], linear[halves], square[halves], wide[halves];
    const T *x = x_rc + c;
    ST_UNROLL for (int v = 0; v < vectors; ++v) {
        i64 at = c + v * each;
        mean[v] = load_lanes(limits.mean + at, width_of(v));
        low[v] = load_lanes(limits.low + at, width_of(v));
        high[v] = load_lanes(limits.high + at, width_of(v));
        for (int k = 0; k < each; ++k) {
            scale[v][k] = k < width_of(v) ? limits.scale[at + k] : 0;
            clip[v][k] = k < width_of(v) ? limits.clip[at + k] : 0;
        }
        outside[v] = cut[v] = Counts{};
        to_doubles(load_lanes(x + v * each, width_of(v)), shift + parts * v);
    }
    ST_UNROLL for (int h = 0; h < halves; ++h) linear[h] = square[h] = Doubles{};
    i64 count = 0;
    for (i64 r = 0; r < rows; ++r, x += columns) {
        if (!(weight_r[r] > 0)) continue;
        ++count;
        ST_UNROLL for (int v = 0; v < vectors; ++v) {
            Lanes value = load_lanes(x + v * each, width_of(v)), z = (value - mean[v]) * scale[v];
            outside[v] |= ~((value >= low[v]) & (value <= high[v]));
            cut[v] -= (z > clip[v]) | (z < -clip[v]);
            to_doubles(value, wide + parts * v);
        }
        ST_UNROLL for (int h = 0; h < halves; ++h) moments_add(wide[h], shift[h], linear[h], square[h]);
    }
    f64 shifts[lanes_held], linears[lanes_held], squares[lanes_held];
    decltype(Counts{}[0] + 0) far[lanes_held], cuts[lanes_held];
    ST_UNROLL for (int h = 0; h < halves; ++h) {
        store(shifts + h * half_lanes, shift[h]);
        store(linears + h * half_lanes, linear[h]);
        store(squares + h * half_lanes, square[h]);
    }
    __builtin_memcpy(far, outside, sizeof far);
    __builtin_memcpy(cuts, cut, sizeof cuts);
    int width = (vectors - 1) * each + last;
    for (int k = 0; k < width; ++k) {
        ColumnMoments *to = share + c + k;
        if (far[k]) {
            moments_of_column(rows, columns, x_rc + c + k, weight_r, limits[c + k], to);
            continue;
        }
        f64 raw_count = to->count;
        moments_merge(static_cast<f64>(count), shifts[k], linears[k], squares[k], raw_count, to->raw_mean,
                      to->raw_squares);
        moments_merge(static_cast<f64>(count), shifts[k], linears[k], squares[k], to->count, to->mean, to->squares);
        to->clipped += f64(cuts[k]);
    }
}

template <class T>
ST_KERNEL void moments(i64 rows, i64 columns, const T *x_rc, const f32 *weight_r, const T *mean_c, const f32 *scale_c,
                       const f32 *clip_c, const T *low_c, const T *high_c, f64 *share_cm) {
    i64 first = 0;
    while (first < rows && !(weight_r[first] > 0)) ++first;
    if (first == rows) return;
    x_rc += first * columns;
    weight_r += first;
    rows -= first;
    LimitArrays<T> limits{mean_c, scale_c, clip_c, low_c, high_c};
    ColumnMoments *share = reinterpret_cast<ColumnMoments *>(share_cm);
    constexpr int each = lanes_of<T>;
    for (i64 c = 0; c < columns; c += 2 * each) {
        i64 left = columns - c;
        if (left > each) {
            int last = static_cast<int>(smaller<i64>(left - each, each));
            moments_of_vectors<2>(rows, columns, c, x_rc, last, weight_r, limits, share);
        } else {
            moments_of_vectors<1>(rows, columns, c, x_rc, static_cast<int>(left), weight_r, limits, share);
        }
    }
}
#endif
ST_EXPORT(moments, float, double)
