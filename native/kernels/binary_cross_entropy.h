// p = sigmoid(z), loss = -y log p - (1 - y) log(1 - p) = max(z, 0) - z y + log(1 + e^-|z|),
// dz = weight (p - y) / weight sum.
// Rows of weight 0 have loss and dz 0 whatever they hold.
#pragma once
#include "base/kernel.h"

ST_KERNEL void binary_cross_entropy(i64 rows, const f32 *z_r, const f32 *label_r, const f32 *weight_r,
                                    const StepBlock *step, f32 *dz_r, f32 *loss_r, f32 *p_r) {
    f64 share = share_of_weight(step);
    ST_FOR(r, rows) {
        f32 z = z_r[r], y = label_r[r], weight = weight_r[r], e = exp(-abs(z)), s = 1.0f / (1.0f + e);
        f32 p = z < 0 ? e * s : s, loss = larger(z, 0.0f) - z * y + log1p(e);
        p_r[r] = p;
        loss_r[r] = weight > 0 ? loss : 0.0f;
        dz_r[r] = weight > 0 ? static_cast<f32>(weight * share) * (p - y) : 0.0f;
    }
}
ST_EXPORT(binary_cross_entropy)
