// How far two rows lie apart: y = |a - b|; da = dy (a - b) / y, db = -da, 0 where they are the same.
#pragma once
#include "base/kernel.h"

ST_KERNEL void distance_forward(i64 rows, i64 columns, const f32 *a_rc, const f32 *b_rc, f32 *y_r) {
    ST_ROWS(r, rows) {
        const f32 *a = a_rc + r * columns, *b = b_rc + r * columns;
        // in double: the square of a float may be no float
        f64 squares = sum<f64>(columns, [&](i64 c) { return f64(a[c] - b[c]) * (a[c] - b[c]); });
        ST_FIRST_LANE y_r[r] = static_cast<f32>(sqrt(squares));
    }
}
ST_EXPORT(distance_forward)

ST_KERNEL void distance_gradient(i64 rows, i64 columns, const f32 *dy_r, const f32 *y_r, const f32 *a_rc,
                                 const f32 *b_rc, f32 *da_rc, f32 *db_rc) {
    ST_ROWS(r, rows) {
        const f32 *a = a_rc + r * columns, *b = b_rc + r * columns;
        f32 *da = da_rc + r * columns, *db = db_rc + r * columns;
        const f64 share = y_r[r] > 0.0f ? f64(dy_r[r]) / y_r[r] : 0.0;   // infinite in float where the rows are close
        ST_LANES(c, columns) {
            da[c] = static_cast<f32>(share * (a[c] - b[c]));
            db[c] = -da[c];
        }
    }
}
ST_EXPORT(distance_gradient)
