// y = max(a, b), a where they are the same, NaN kept; dy goes to the one that was taken.
#pragma once
#include "base/kernel.h"

ST_INLINE bool takes_second(f32 a, f32 b) { return b > a || b != b; }

ST_KERNEL void maximum_forward(i64 n, f32 *y, const f32 *a, const f32 *b) {
    ST_FOR(i, n) y[i] = takes_second(a[i], b[i]) ? b[i] : a[i];
}
ST_EXPORT(maximum_forward)

ST_KERNEL void maximum_gradient(i64 n, f32 *da, f32 *db, const f32 *dy, const f32 *a, const f32 *b) {
    ST_FOR(i, n) {
        const bool second = takes_second(a[i], b[i]);
        da[i] = second ? 0.0f : dy[i];
        db[i] = second ? dy[i] : 0.0f;
    }
}
ST_EXPORT(maximum_gradient)
