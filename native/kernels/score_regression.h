// Adds a batch, predicted before its update, to this round's scores: loss_4 = (weighted loss, weight, weighted loss of
// the constant prediction, weighted label), errors_5 = (w |e|, w e^2, w y^2, and w |e|, w e^2 of the constant
// prediction), e in the label's unit, rows_1. The constant prediction of a row is the mean label of the rows before it;
// the first of all has none and counts as an error of 0.
#pragma once
#include "base/kernel.h"

ST_KERNEL void score_regression(i64 rows, const f32 *p_r, const f32 *loss_r, const f32 *label_r, const f32 *weight_r,
                                const f32 *scale, const f64 *base_loss_4, StepBlock *step, f64 *loss_4, f64 *errors_5,
                                i64 *rows_1) {
    ST_ROWS(once, 1) {
        auto weighted = [&](i64 r, f64 value) { return weight_r[r] > 0 ? f64(weight_r[r]) * value : 0.0; };
        f64 totals[5];
        sums(rows, totals, [&](i64 r, f64 *its) ST_LAMBDA {
            const f64 error = f64(p_r[r]) - label_r[r];
            its[0] = weighted(r, loss_r[r]);
            its[1] = weighted(r, label_r[r]);
            its[2] = weighted(r, abs(error));
            its[3] = weighted(r, error * error);
            its[4] = weighted(r, f64(label_r[r]) * label_r[r]);
        });
        const auto [loss, label, linear, square, label_square] = totals;
        Two constant = sum_in_order(
            rows, Two{base_loss_4[1] + loss_4[1], base_loss_4[3] + loss_4[3]},
            [&](i64 r) { return Two{weighted(r, 1), weighted(r, label_r[r])}; },
            [&](i64 r, Two before) {
                f64 error = before.first > 0 ? before.second / before.first - label_r[r] : 0.0;
                return Two{weighted(r, abs(error)), weighted(r, error * error)};
            });
        ST_FIRST_LANE {
            loss_4[0] += loss;
            loss_4[1] += step->weight_sum;
            loss_4[2] += constant.second * f64(scale[0]) * scale[0];
            loss_4[3] += label;
            errors_5[0] += linear;
            errors_5[1] += square;
            errors_5[2] += label_square;
            errors_5[3] += constant.first;
            errors_5[4] += constant.second;
            rows_1[0] += step->active_rows;
            step->loss_sum = loss;
            step->not_finite |= not_finite(loss);
        }
    }
}
ST_EXPORT(score_regression)
