// The product of two rows: y = sum of a b; da = dy b, db = dy a.
#pragma once
#include "base/kernel.h"

ST_KERNEL void dot_forward(i64 rows, i64 columns, const f32 *a_rc, const f32 *b_rc, f32 *y_r) {
    ST_ROWS(r, rows) {
        const f32 *a = a_rc + r * columns, *b = b_rc + r * columns;
        f32 total = sum<f32>(columns, [&](i64 c) { return a[c] * b[c]; });
        ST_FIRST_LANE y_r[r] = total;
    }
}
ST_EXPORT(dot_forward)

ST_KERNEL void dot_gradient(i64 rows, i64 columns, const f32 *dy_r, const f32 *a_rc, const f32 *b_rc, f32 *da_rc,
                            f32 *db_rc) {
    ST_ROWS(r, rows) {
        const f32 *a = a_rc + r * columns, *b = b_rc + r * columns;
        f32 *da = da_rc + r * columns, *db = db_rc + r * columns;
        ST_LANES(c, columns) {
            da[c] = dy_r[r] * b[c];
            db[c] = dy_r[r] * a[c];
        }
    }
}
ST_EXPORT(dot_gradient)
