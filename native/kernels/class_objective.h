// Cross entropy of a label of which a part, smoothing, is spread over all classes, times the weight of its class; plain
// is that of the label itself: -sum t log p = plain + smoothing (z[label] - mean z).
#pragma once
#include "base/kernel.h"

ST_KERNEL void class_objective(i64 rows, i64 classes, f32 smoothing, const f32 *z_rk, const f32 *p_rk,
                               const f32 *plain_r, const i32 *label_r, const f32 *weight_r, const f32 *class_weight_k,
                               const StepBlock *step, f32 *dz_rk, f32 *loss_r) {
    f64 share = share_of_weight(step);
    f32 spread = smoothing / static_cast<f32>(classes);
    ST_ROWS(r, rows) {
        const f32 *z = z_rk + r * classes, *p = p_rk + r * classes;
        f32 *dz = dz_rk + r * classes, weight = weight_r[r];
        i64 label = label_r[r] >= 0 && label_r[r] < classes ? label_r[r] : 0;
        f32 factor = class_weight_k[label], part = static_cast<f32>(weight * share) * factor;
        ST_LANES(k, classes) {
            f32 target = spread + (k == label ? 1.0f - smoothing : 0.0f);
            dz[k] = weight > 0 ? part * (p[k] - target) : 0.0f;
        }
        f32 below = sum<f32>(classes, [&](i64 k) { return z[label] - z[k]; });
        ST_FIRST_LANE loss_r[r] = weight > 0 ? factor * (plain_r[r] + spread * below) : 0.0f;
    }
}
ST_EXPORT(class_objective)
