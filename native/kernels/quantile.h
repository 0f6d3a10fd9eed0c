// With the error e: loss = at |e| where the label lies above the prediction, (1 - at) |e| where it lies below.
#pragma once
#include "base/kernel.h"

ST_KERNEL void quantile(i64 rows, f32 at, const f32 *z_r, const f32 *label_r, const f32 *weight_r, const f32 *mean,
                        const f32 *scale, const StepBlock *step, f32 *dz_r, f32 *loss_r, f32 *p_r) {
    each_number(rows, z_r, label_r, weight_r, mean, scale, step, dz_r, loss_r, p_r, [&](f32 e) -> RowLoss {
        f32 slope = e < 0 ? -at : e > 0 ? 1.0f - at : 0.0f;
        return {slope * e, slope};
    });
}
ST_EXPORT(quantile)
