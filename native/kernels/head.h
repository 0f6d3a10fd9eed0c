// Of a model of several heads what the loss of one takes and gives: the weight of its rows, its part of the gradient
// and of the batch's loss. A head has a step block of its own, with weight and loss of the rows that have its label.
#pragma once
#include "base/kernel.h"

// own_r: the weight of a row that has the label, 0 of one that has not: a NaN, or a class below 0.
ST_KERNEL void head_weight_f32(i64 rows, const f32 *label_r, const f32 *weight_r, f32 *own_r) {
    ST_FOR(r, rows) own_r[r] = label_r[r] == label_r[r] ? weight_r[r] : 0.0f;
}
ST_EXPORT(head_weight_f32)

ST_KERNEL void head_weight_i32(i64 rows, const i32 *label_r, const f32 *weight_r, f32 *own_r) {
    ST_FOR(r, rows) own_r[r] = label_r[r] >= 0 ? weight_r[r] : 0.0f;
}
ST_EXPORT(head_weight_i32)

// Nothing of the batch is known yet.
ST_KERNEL void head_begin(StepBlock *head) {
    ST_FOR(once, 1) {
        head->loss_sum = head->objective_sum = head->weight_sum = 0;
        head->active_rows = 0;
        head->not_finite = 0;
    }
}
ST_EXPORT(head_begin)

// dz_n of the mean over the head's rows becomes that of its part in the mean over all rows, times its weight.
ST_KERNEL void head_gradient(i64 n, f32 weight, const StepBlock *head, const StepBlock *step, f32 *dz_n) {
    const f64 part = head->weight_sum > 0 ? f64(weight) * (head->weight_sum * share_of_weight(step)) : 0.0;
    const f32 factor = static_cast<f32>(part);
    ST_FOR(i, n) dz_n[i] *= factor;
}
ST_EXPORT(head_gradient)

// The head's weighted loss, as it is minimised, onto that of the batch: labels may be in several units.
ST_KERNEL void head_end(f32 weight, const StepBlock *head, StepBlock *step) {
    ST_FOR(once, 1) {
        step->objective_sum += f64(weight) * head->objective_sum;
        step->loss_sum = step->objective_sum;
        step->not_finite |= head->not_finite;
    }
}
ST_EXPORT(head_end)

// Adds a batch, behind its last head, to this round's scores: loss_2 = (weighted loss of all heads, weight), rows_1.
ST_KERNEL void score_heads(StepBlock *step, f64 *loss_2, i64 *rows_1) {
    ST_FOR(once, 1) {
        loss_2[0] += step->loss_sum;
        loss_2[1] += step->weight_sum;
        rows_1[0] += step->active_rows;
    }
}
ST_EXPORT(score_heads)
