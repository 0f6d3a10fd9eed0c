// y = a - b.
#pragma once
#include "base/kernel.h"

ST_KERNEL void subtract_forward(i64 n, f32 *y, const f32 *a, const f32 *b) {
    ST_FOR(i, n) y[i] = a[i] - b[i];
}
ST_EXPORT(subtract_forward)
