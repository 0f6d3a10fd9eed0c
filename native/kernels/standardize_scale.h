// Of each column from its moments: mean, 1 / standard deviation, where the model's value is cut (in deviations), and
// between which values its moments take a value as it is. A column that is not chosen, or of which nothing was seen,
// passes as it is; one that never varied, or less than its floor, is only centred. T is the type of the values.
#pragma once
#include "base/kernel.h"

template <class T>
ST_KERNEL void standardize_scale(i64 columns, const f64 *moments_cm, const u8 *chosen_c, T *mean_c, f32 *scale_c,
                                 f32 *clip_c, T *low_c, T *high_c) {
    const f32 infinity = from_bits(i32(0x7f800000));
    ST_FOR(c, columns) {
        ColumnMoments column = reinterpret_cast<const ColumnMoments *>(moments_cm)[c];
        bool known = chosen_c[c] != 0 && column.count > 0;
        f64 deviation = deviation_of(column), reach = known ? reach_of(column) : beyond_any;
        mean_c[c] = known ? static_cast<T>(column.mean) : T(0);
        scale_c[c] = known && deviation > 0 && deviation >= column.floor ? static_cast<f32>(1 / deviation) : 1.0f;
        clip_c[c] = known && column.clip > 0 ? static_cast<f32>(column.clip) : infinity;
        low_c[c] = reach < beyond_any ? static_cast<T>(column.mean - reach) : -infinity;
        high_c[c] = reach < beyond_any ? static_cast<T>(column.mean + reach) : infinity;
    }
}
ST_EXPORT(standardize_scale, float, double)
