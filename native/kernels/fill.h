// y = value.
#pragma once
#include "base/kernel.h"

ST_KERNEL void fill(i64 n, f32 value, f32 *y) {
    ST_FOR(i, n) y[i] = value;
}
ST_EXPORT(fill)
