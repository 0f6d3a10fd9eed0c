// y = a b; da = dy b, db = dy a.
#pragma once
#include "base/kernel.h"

ST_KERNEL void multiply_forward(i64 n, f32 *y, const f32 *a, const f32 *b) {
    ST_FOR(i, n) y[i] = a[i] * b[i];
}
ST_EXPORT(multiply_forward)

ST_KERNEL void multiply_gradient(i64 n, f32 *da, f32 *db, const f32 *dy, const f32 *a, const f32 *b) {
    ST_FOR(i, n) {
        da[i] = dy[i] * b[i];
        db[i] = dy[i] * a[i];
    }
}
ST_EXPORT(multiply_gradient)
