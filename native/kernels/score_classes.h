// Adds a batch, predicted before its update, to this round's scores: loss_4 = (weighted loss, weight, weighted loss of
// the constant prediction, 0), classes_k = weight by class, hits_2 = weight of the rows whose class the model, the
// constant prediction had as the likeliest, rows_1.
#pragma once
#include "base/kernel.h"

ST_KERNEL void score_classes(i64 rows, i64 classes, const i32 *rank_r, const f32 *loss_r, const i32 *label_r,
                             const f32 *weight_r, const f64 *base_classes_k, StepBlock *step, f64 *loss_4,
                             f64 *classes_k, f64 *hits_2, i64 *rows_1) {
    ST_ROWS(once, 1) {
        auto class_of = [&](i64 r) { return label_r[r] >= 0 && label_r[r] < classes ? i64(label_r[r]) : i64(0); };
        f64 loss = sum<f64>(rows, [&](i64 r) { return f64(weight_r[r] > 0 ? weight_r[r] : 0.0f) * loss_r[r]; });
        f64 right = sum<f64>(rows, [&](i64 r) { return weight_r[r] > 0 && rank_r[r] == 0 ? f64(weight_r[r]) : 0.0; });
        ConstantScore constant = score_constant(rows, classes, base_classes_k, classes_k, weight_r, class_of);
        ST_FIRST_LANE {
            loss_4[0] += loss;
            loss_4[1] += step->weight_sum;
            loss_4[2] += constant.loss;
            hits_2[0] += right;
            hits_2[1] += constant.right;
            rows_1[0] += step->active_rows;
            step->loss_sum = step->objective_sum = loss;
            step->not_finite |= not_finite(loss);
        }
    }
}
ST_EXPORT(score_classes)
