// Loss e^2 of the error e; and the way from a score back to the label's own unit.
#pragma once
#include "base/kernel.h"

ST_KERNEL void mean_squared_error(i64 rows, const f32 *z_r, const f32 *label_r, const f32 *weight_r, const f32 *mean,
                                  const f32 *scale, const StepBlock *step, f32 *dz_r, f32 *loss_r, f32 *p_r) {
    each_number(rows, z_r, label_r, weight_r, mean, scale, step, dz_r, loss_r, p_r,
                [&](f32 e) -> RowLoss { return {e * e, 2 * e}; });
}
ST_EXPORT(mean_squared_error)

ST_KERNEL void unstandardize(i64 n, const f32 *z, const f32 *mean, const f32 *scale, f32 *p) {
    ST_FOR(i, n) p[i] = z[i] / scale[0] + mean[0];
}
ST_EXPORT(unstandardize)
