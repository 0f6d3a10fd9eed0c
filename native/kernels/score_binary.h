// Adds a batch, predicted before its update, to this round's scores:
// loss_4 = (weighted loss, weight, weighted loss of the
// constant prediction, weighted label), histogram_lb = rows by label and 1024 equal bins of p, hits = (correct, rows).
// The constant prediction is the label mean of the base, kept 1e-6 away from 0 and 1; 0.5 where nothing was seen yet.
#pragma once
#include "base/kernel.h"

ST_KERNEL void score_binary(i64 rows, const f32 *p_r, const f32 *loss_r, const f32 *label_r, const f32 *weight_r,
                            const f64 *base_loss_4, StepBlock *step, f64 *loss_4, i64 *histogram_lb, i64 *hits_2) {
    f64 mean = base_loss_4[1] > 0 ? base_loss_4[3] / base_loss_4[1] : 0.5;
    mean = smaller(larger(mean, 1e-6), 1 - 1e-6);
    ST_ROWS(once, 1) {
        f64 loss = sum<f64>(rows, [&](i64 r) { return f64(weight_r[r] > 0 ? weight_r[r] : 0.0f) * loss_r[r]; });
        f64 label = sum<f64>(rows, [&](i64 r) { return weight_r[r] > 0 ? f64(weight_r[r]) * label_r[r] : 0.0; });
        i32 counted = sum<i32>(rows, [&](i64 r) { return weight_r[r] > 0 ? 1 : 0; });
        i32 correct = sum<i32>(rows, [&](i64 r) {
            return weight_r[r] > 0 && (p_r[r] >= 0.5f) == (label_r[r] >= 0.5f) ? 1 : 0;
        });
        ST_FIRST_LANE {
            f64 weight = step->weight_sum;
            loss_4[0] += loss;
            loss_4[1] += weight;
            loss_4[2] -= label * log(mean) + (weight - label) * log(1 - mean);
            loss_4[3] += label;
            hits_2[0] += correct;
            hits_2[1] += counted;
            step->loss_sum = loss;
            step->not_finite |= not_finite(loss);
        }
        ST_LANES_IN_ORDER(r, rows) {
            f32 bin = p_r[r] * 1024.0f;
            bin = bin > 0 ? bin : 0.0f;   // a NaN too
            i64 index = static_cast<i64>(bin < 1023.0f ? bin : 1023.0f) + (label_r[r] >= 0.5f ? 1024 : 0);
            add_count(histogram_lb + index, weight_r[r] > 0 ? 1 : 0);
        }
    }
}
ST_EXPORT(score_binary)
