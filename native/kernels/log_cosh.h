// With the error e: loss = log cosh e, its slope tanh e. cosh a - 1 = m^2 / (2 (m + 1)) with m = e^a - 1, right for
// small a too; from a = 10 on log cosh a is a - log 2.
#pragma once
#include "base/kernel.h"

ST_KERNEL void log_cosh(i64 rows, const f32 *z_r, const f32 *label_r, const f32 *weight_r, const f32 *mean,
                        const f32 *scale, const StepBlock *step, f32 *dz_r, f32 *loss_r, f32 *p_r) {
    each_number(rows, z_r, label_r, weight_r, mean, scale, step, dz_r, loss_r, p_r, [&](f32 e) -> RowLoss {
        f32 size = abs(e), m = expm1(smaller(size, 10.0f)), near = log1p(m * m / (2.0f * (m + 1.0f)));
        return {size < 10 ? near : size - 0.693147181f, tanh(e)};
    });
}
ST_EXPORT(log_cosh)
