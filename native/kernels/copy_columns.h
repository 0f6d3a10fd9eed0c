// Columns of one matrix into those of another, y_rw[r, at + c] = x_rv[r, from + c], or added to them.
#pragma once
#include "base/kernel.h"

ST_KERNEL void copy_columns(i64 rows, i64 count, i64 given_width, i64 from, i64 width, i64 at, const f32 *x_rv,
                            f32 *y_rw) {
    ST_ROWS(r, rows) {
        const f32 *x = x_rv + r * given_width + from;
        f32 *y = y_rw + r * width + at;
        ST_LANES(c, count) y[c] = x[c];
    }
}
ST_EXPORT(copy_columns)

ST_KERNEL void add_columns(i64 rows, i64 count, i64 given_width, i64 from, i64 width, i64 at, const f32 *x_rv,
                           f32 *y_rw) {
    ST_ROWS(r, rows) {
        const f32 *x = x_rv + r * given_width + from;
        f32 *y = y_rw + r * width + at;
        ST_LANES(c, count) y[c] += x[c];
    }
}
ST_EXPORT(add_columns)
