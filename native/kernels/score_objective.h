// Adds a batch, predicted before its update, to this round's scores where more than the log loss is minimised:
// objective_2 = (weighted loss, weighted loss of the constant prediction). The step's loss is that.
#pragma once
#include "base/kernel.h"

ST_KERNEL void score_objective(i64 rows, const f32 *loss_r, const f32 *constant_loss_r, const f32 *weight_r,
                               StepBlock *step, f64 *objective_2) {
    ST_ROWS(once, 1) {
        auto total = [&](const f32 *loss) {
            return sum<f64>(rows, [&](i64 r) { return weight_r[r] > 0 ? f64(weight_r[r]) * loss[r] : 0.0; });
        };
        f64 loss = total(loss_r), constant_loss = total(constant_loss_r);
        ST_FIRST_LANE {
            objective_2[0] += loss;
            objective_2[1] += constant_loss;
            step->loss_sum = step->objective_sum = loss;
            step->not_finite |= not_finite(loss);
        }
    }
}
ST_EXPORT(score_objective)
