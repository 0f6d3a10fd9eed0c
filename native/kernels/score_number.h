// Adds a batch, predicted before its update, to this round's scores: loss_4 = (weighted loss, weight, weighted loss of
// the constant prediction, weighted label), errors_5 = (w |e|, w e^2, w y^2, and w |e|, w e^2 of the constant
// prediction), rows_1, all in the label's unit. The constant prediction of each row and its loss are given. Losses come
// as they are minimised, of a standardised label in its deviations: a deviation is 1 / scale, and the loss grows with
// the label's unit to the power of `degree`.
#pragma once
#include "base/kernel.h"

ST_KERNEL void score_number(i64 rows, f32 degree, const f32 *scale, const f32 *p_r, const f32 *loss_r,
                            const f32 *constant_r, const f32 *constant_loss_r, const f32 *label_r,
                            const f32 *weight_r, StepBlock *step, f64 *loss_4, f64 *errors_5, i64 *rows_1) {
    ST_ROWS(once, 1) {
        auto total = [&](auto value) {
            return sum<f64>(rows, [&](i64 r) { return weight_r[r] > 0 ? f64(weight_r[r]) * value(r) : 0.0; });
        };
        auto linear = [&](const f32 *p) { return total([&](i64 r) { return abs(f64(p[r]) - label_r[r]); }); };
        auto square = [&](const f32 *p) {
            return total([&](i64 r) { return (f64(p[r]) - label_r[r]) * (f64(p[r]) - label_r[r]); });
        };
        f64 loss = total([&](i64 r) { return f64(loss_r[r]); });
        f64 constant_loss = total([&](i64 r) { return f64(constant_loss_r[r]); });
        f64 label = total([&](i64 r) { return f64(label_r[r]); });
        f64 label_square = total([&](i64 r) { return f64(label_r[r]) * label_r[r]; });
        f64 errors[] = {linear(p_r), square(p_r), label_square, linear(constant_r), square(constant_r)};
        ST_FIRST_LANE {
            const f64 deviation = 1.0 / scale[0];
            const f64 unit = degree == 2 ? deviation * deviation : degree == 1 ? deviation : 1.0;
            loss_4[0] += unit * loss;
            loss_4[1] += step->weight_sum;
            loss_4[2] += unit * constant_loss;
            loss_4[3] += label;
            for (int i = 0; i < 5; ++i) errors_5[i] += errors[i];
            rows_1[0] += step->active_rows;
            step->loss_sum = unit * loss;
            step->objective_sum = loss;
            step->not_finite |= not_finite(loss);
        }
    }
}
ST_EXPORT(score_number)
