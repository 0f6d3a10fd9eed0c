// Cross entropy of a label pulled towards 1/2, t = y (1 - smoothing) + smoothing / 2, times the weight of its class;
// plain is that of y itself: -t log p - (1 - t) log(1 - p) = plain + z (y - t).
#pragma once
#include "base/kernel.h"

ST_KERNEL void binary_objective(i64 rows, f32 smoothing, const f32 *z_r, const f32 *p_r, const f32 *plain_r,
                                const f32 *label_r, const f32 *weight_r, const f32 *class_weight_2,
                                const StepBlock *step, f32 *dz_r, f32 *loss_r) {
    each_row(rows, weight_r, step, dz_r, loss_r, [&](i64 r) -> RowLoss {
        f32 y = label_r[r], factor = y >= 0.5f ? class_weight_2[1] : class_weight_2[0];
        f32 moved = smoothing * (y - 0.5f);
        return {factor * (plain_r[r] + z_r[r] * moved), factor * (p_r[r] - (y - moved))};
    });
}
ST_EXPORT(binary_objective)
