// p_k = e^(z_k - max z) / sum over k.
#pragma once
#include "base/kernel.h"

// Returns the sum of the powers; each lane reads back what it wrote itself.
ST_INLINE f32 softmax_row(i64 classes, const f32 *z_k, f32 largest, f32 *p_k) {
    ST_LANES(k, classes) p_k[k] = exp(z_k[k] - largest);
    f32 total = sum<f32>(classes, [&](i64 k) { return p_k[k]; }), share = 1.0f / total;
    ST_LANES(k, classes) p_k[k] *= share;
    return total;
}

ST_KERNEL void softmax(i64 rows, i64 classes, const f32 *z_rk, f32 *p_rk) {
    ST_ROWS(r, rows) {
        const f32 *z = z_rk + r * classes;
        f32 largest = maximum<f32>(classes, z[0], [&](i64 k) { return z[k]; });
        softmax_row(classes, z, largest, p_rk + r * classes);
    }
}
ST_EXPORT(softmax)
