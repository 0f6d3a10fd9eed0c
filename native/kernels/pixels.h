// Bytes as numbers from -0.5 to 0.5 into the input matrix: x_rw[r, at + c] = bytes_rc[r, c] / 255 - 0.5.
#pragma once
#include "base/kernel.h"

ST_KERNEL void pixels(i64 rows, i64 columns, i64 width, i64 at, const u8 *bytes_rc, f32 *x_rw) {
    ST_ROWS(r, rows) {
        const u8 *from = bytes_rc + r * columns;
        f32 *to = x_rw + r * width + at;
        ST_LANES(c, columns) to[c] = static_cast<f32>(from[c]) / 255.0f - 0.5f;
    }
}
ST_EXPORT(pixels)
