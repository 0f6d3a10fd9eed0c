// Columns of the input matrix from `at` on: x_rw[r, at + c] = (numbers_rc[r, c] - mean_c) * scale_c, cut at -clip_c and
// clip_c. A number that is missing (NaN) is 0, as the mean is.
#pragma once
#include "base/kernel.h"

template <class T>
ST_KERNEL void standardize(i64 rows, i64 columns, i64 width, i64 at, const T *numbers_rc,
                           const T *mean_c, const f32 *scale_c, const f32 *clip_c, f32 *x_rw) {
    ST_ROWS(r, rows) {
        const T *from = numbers_rc + r * columns;
        f32 *to = x_rw + r * width + at;
        ST_LANES(c, columns) {
            T z = (from[c] - mean_c[c]) * scale_c[c], clip = clip_c[c];
            z = z > clip ? clip : z;
            z = z < -clip ? -clip : z;
            to[c] = from[c] == from[c] ? static_cast<f32>(z) : 0.0f;
        }
    }
}
ST_EXPORT(standardize, float, double)
