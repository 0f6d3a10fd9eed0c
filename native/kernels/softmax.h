// p_k = e^(z_k - max z) / sum over k.
#pragma once
#include "base/kernel.h"

// The powers, and their sum.
ST_INLINE f32 powers_of_row(i64 classes, const f32 *z_k, f32 largest, f32 *power_k) {
    return sum<f32>(classes, [&](i64 k) { return power_k[k] = exp(z_k[k] - largest); });
}

ST_KERNEL void softmax(i64 rows, i64 classes, const f32 *z_rk, f32 *p_rk) {
    ST_ROWS(r, rows) {
        const f32 *z = z_rk + r * classes;
        f32 *p = p_rk + r * classes, largest = maximum<f32>(classes, z[0], [&](i64 k) { return z[k]; });
        const f32 share = 1.0f / powers_of_row(classes, z, largest, p);
        ST_LANES(k, classes) p[k] *= share;   // each lane what it wrote itself
    }
}
ST_EXPORT(softmax)
