// Rows of length 1: y = x / |x|, and x itself where that is 0; dx = (dy - y (dy y)) / |x|.
#pragma once
#include "base/kernel.h"

ST_KERNEL void unit_rows_forward(i64 rows, i64 columns, const f32 *x_rc, f32 *y_rc, f32 *length_r) {
    ST_ROWS(r, rows) {
        const f32 *x = x_rc + r * columns;
        f32 *y = y_rc + r * columns;
        f32 length = sqrt(sum<f32>(columns, [&](i64 c) { return x[c] * x[c]; }));
        if (!(length > 0.0f)) length = 1.0f;
        ST_FIRST_LANE length_r[r] = length;
        ST_LANES(c, columns) y[c] = x[c] / length;
    }
}
ST_EXPORT(unit_rows_forward)

ST_KERNEL void unit_rows_gradient(i64 rows, i64 columns, const f32 *dy_rc, const f32 *y_rc, const f32 *length_r,
                                  f32 *dx_rc) {
    ST_ROWS(r, rows) {
        const f32 *dy = dy_rc + r * columns, *y = y_rc + r * columns;
        f32 *dx = dx_rc + r * columns;
        f32 along = sum<f32>(columns, [&](i64 c) { return dy[c] * y[c]; });
        ST_LANES(c, columns) dx[c] = (dy[c] - y[c] * along) / length_r[r];
    }
}
ST_EXPORT(unit_rows_gradient)
