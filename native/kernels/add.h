// y = a + b; y may be a.
#pragma once
#include "base/kernel.h"

ST_KERNEL void add_forward(i64 n, f32 *y, const f32 *a, const f32 *b) {
    ST_FOR(i, n) y[i] = a[i] + b[i];
}
ST_EXPORT(add_forward)
