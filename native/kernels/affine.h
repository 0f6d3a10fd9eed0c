// y = scale x + shift; y may be x.
#pragma once
#include "base/kernel.h"

ST_KERNEL void affine(i64 n, f32 scale, f32 shift, f32 *y, const f32 *x) {
    ST_FOR(i, n) y[i] = fma(scale, x[i], shift);
}
ST_EXPORT(affine)
