// Matrices side by side, y_rw[r, at + c] = x_i[i][r, c], and the other way round. parts_ik: of each its first column in
// the wide one, and how many it has.
#pragma once
#include "base/kernel.h"

ST_KERNEL void concat_forward(i64 rows, i64 inputs, i64 width, const i64 *parts_ik, const f32 *const *x_i, f32 *y_rw) {
    ST_ROWS(r, rows) {
        for (i64 i = 0; i < inputs; ++i) {
            const i64 at = parts_ik[2 * i], count = parts_ik[2 * i + 1];
            const f32 *x = x_i[i] + r * count;
            f32 *y = y_rw + r * width + at;
            ST_LANES(c, count) y[c] = x[c];
        }
    }
}
ST_EXPORT(concat_forward)

ST_KERNEL void concat_gradient(i64 rows, i64 outputs, i64 width, const i64 *parts_ok, const f32 *dy_rw,
                               f32 *const *dx_o) {
    ST_ROWS(r, rows) {
        for (i64 o = 0; o < outputs; ++o) {
            const i64 at = parts_ok[2 * o], count = parts_ok[2 * o + 1];
            const f32 *dy = dy_rw + r * width + at;
            f32 *dx = dx_o[o] + r * count;
            ST_LANES(c, count) dx[c] = dy[c];
        }
    }
}
ST_EXPORT(concat_gradient)
