// With the error e: loss = e^2 / 2 up to delta, beyond it the line that goes on from there, delta (|e| - delta / 2).
#pragma once
#include "base/kernel.h"

ST_KERNEL void huber(i64 rows, f32 delta, const f32 *z_r, const f32 *label_r, const f32 *weight_r, const f32 *mean,
                     const f32 *scale, const StepBlock *step, f32 *dz_r, f32 *loss_r, f32 *p_r) {
    each_number(rows, z_r, label_r, weight_r, mean, scale, step, dz_r, loss_r, p_r, [&](f32 e) -> RowLoss {
        f32 size = abs(e), near = smaller(size, delta);
        return {near * (size - 0.5f * near), copysign(near, e)};
    });
}
ST_EXPORT(huber)
