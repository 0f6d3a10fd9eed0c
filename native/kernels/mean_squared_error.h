// With the label t = (y - mean) * scale: loss = (z - t)^2, dz = 2 weight (z - t) / weight sum;
// p = z / scale + mean is the prediction in the label's own unit. Rows of weight 0 have loss and dz 0.
#pragma once
#include "base/kernel.h"

ST_KERNEL void mean_squared_error(i64 rows, const f32 *z_r, const f32 *label_r, const f32 *weight_r, const f32 *mean,
                                  const f32 *scale, const StepBlock *step, f32 *dz_r, f32 *loss_r, f32 *p_r) {
    f64 share = 2 * share_of_weight(step);
    ST_FOR(r, rows) {
        f32 z = z_r[r], weight = weight_r[r], error = z - (label_r[r] - mean[0]) * scale[0];
        p_r[r] = z / scale[0] + mean[0];
        loss_r[r] = weight > 0 ? error * error : 0.0f;
        dz_r[r] = weight > 0 ? static_cast<f32>(weight * share) * error : 0.0f;
    }
}
ST_EXPORT(mean_squared_error)

ST_KERNEL void unstandardize(i64 n, const f32 *z, const f32 *mean, const f32 *scale, f32 *p) {
    ST_FOR(i, n) p[i] = z[i] / scale[0] + mean[0];
}
ST_EXPORT(unstandardize)
