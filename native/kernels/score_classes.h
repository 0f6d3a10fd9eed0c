// Adds a batch, predicted before its update, to this round's scores:
// loss_4 = (weighted loss, weight, weighted loss of the
// constant prediction, 0), classes_k = weight by class, hits = (correct, rows).
// The constant prediction is the base's share of each class, at least 1e-6; all equal where the base has seen nothing.
#pragma once
#include "base/kernel.h"

ST_KERNEL void score_classes(i64 rows, i64 classes, const f32 *p_rk, const f32 *loss_r, const i32 *label_r,
                             const f32 *weight_r, const f64 *base_classes_k, StepBlock *step, f64 *loss_4,
                             f64 *classes_k, i64 *hits_2) {
    ST_ROWS(once, 1) {
        f64 seen = sum<f64>(classes, [&](i64 k) { return base_classes_k[k]; });
        auto class_of = [&](i64 r) { return label_r[r] >= 0 && label_r[r] < classes ? i64(label_r[r]) : i64(0); };
        f64 loss = sum<f64>(rows, [&](i64 r) { return f64(weight_r[r] > 0 ? weight_r[r] : 0.0f) * loss_r[r]; });
        f64 constant = sum<f64>(rows, [&](i64 r) {
            f64 share = seen > 0 ? base_classes_k[class_of(r)] / seen : 1.0 / f64(classes);
            return weight_r[r] > 0 ? -f64(weight_r[r]) * log(larger(share, 1e-6)) : 0.0;
        });
        i32 counted = sum<i32>(rows, [&](i64 r) { return weight_r[r] > 0 ? 1 : 0; });
        i32 correct = sum<i32>(rows, [&](i64 r) {
            const f32 *p = p_rk + r * classes;
            f32 at_label = p[class_of(r)];
            bool best = true;
            for (i64 k = 0; k < classes; ++k)   // of equals the first
                best = best && (p[k] < at_label || (p[k] == at_label && k >= class_of(r)));
            return weight_r[r] > 0 && best ? 1 : 0;
        });
        ST_FIRST_LANE {
            for (i64 r = 0; r < rows; ++r)   // in row order
                if (weight_r[r] > 0) classes_k[class_of(r)] += weight_r[r];
            loss_4[0] += loss;
            loss_4[1] += step->weight_sum;
            loss_4[2] += constant;
            hits_2[0] += correct;
            hits_2[1] += counted;
            step->loss_sum = loss;
            step->not_finite |= not_finite(loss);
        }
    }
}
ST_EXPORT(score_classes)
