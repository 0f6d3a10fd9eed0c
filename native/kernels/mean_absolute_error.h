// With the error e: loss = |e|, its slope the sign of e, 0 at 0.
#pragma once
#include "base/kernel.h"

ST_KERNEL void mean_absolute_error(i64 rows, const f32 *z_r, const f32 *label_r, const f32 *weight_r, const f32 *mean,
                                   const f32 *scale, const StepBlock *step, f32 *dz_r, f32 *loss_r, f32 *p_r) {
    each_number(rows, z_r, label_r, weight_r, mean, scale, step, dz_r, loss_r, p_r, [&](f32 e) -> RowLoss {
        return {abs(e), e > 0 ? 1.0f : e < 0 ? -1.0f : 0.0f};
    });
}
ST_EXPORT(mean_absolute_error)
