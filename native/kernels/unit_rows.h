// Rows of length 1: y = x / |x|, and x itself where that is 0; dx = (dy - y (dy y)) / |x|. In double: the square of a
// float may be no float.
#pragma once
#include "base/kernel.h"

ST_KERNEL void unit_rows_forward(i64 rows, i64 columns, const f32 *x_rc, f32 *y_rc, f32 *length_r) {
    ST_ROWS(r, rows) {
        const f32 *x = x_rc + r * columns;
        f32 *y = y_rc + r * columns;
        f64 length = sqrt(sum<f64>(columns, [&](i64 c) { return f64(x[c]) * x[c]; }));
        if (length == 0) length = 1;
        ST_FIRST_LANE length_r[r] = static_cast<f32>(length);
        ST_LANES(c, columns) y[c] = static_cast<f32>(x[c] / length);
    }
}
ST_EXPORT(unit_rows_forward)

ST_KERNEL void unit_rows_gradient(i64 rows, i64 columns, const f32 *dy_rc, const f32 *y_rc, const f32 *length_r,
                                  f32 *dx_rc) {
    ST_ROWS(r, rows) {
        const f32 *dy = dy_rc + r * columns, *y = y_rc + r * columns;
        f32 *dx = dx_rc + r * columns;
        const f64 along = sum<f64>(columns, [&](i64 c) { return f64(dy[c]) * y[c]; }), length = length_r[r];
        ST_LANES(c, columns) dx[c] = static_cast<f32>((dy[c] - y[c] * along) / length);
    }
}
ST_EXPORT(unit_rows_gradient)
