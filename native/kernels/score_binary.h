// Adds a batch, predicted before its update, to this round's scores: loss_4 = (weighted loss, weight, weighted loss of
// the constant prediction, 0), classes_2 = weight by label, hits_2 = weight of the rows whose label the model, the
// constant prediction had as the likelier, rows_1, and histogram_lbm = by label and bin of the logit the sums of
// weight, weight x and weight x^2, x the place in the bin from 0 to 1: what an AUC is computed from.
#pragma once
#include "base/kernel.h"

ST_INLINE Moments moments_of_logit(f32 z, bool label, f32 weight) {
    constexpr f32 reach = f32(LOGIT_BINS) / (2 * LOGIT_BINS_OF_ONE), even = LOGIT_EVEN_TO, beyond = reach - even;
    f32 size = abs(z), folded = size <= even ? size : reach - beyond * beyond / (size - (even - beyond));
    f32 at = (copysign(folded, z) + reach) * LOGIT_BINS_OF_ONE;
    at = at > 0 ? at : 0;   // a NaN too
    i32 bin = static_cast<i32>(at < LOGIT_BINS - 1 ? at : LOGIT_BINS - 1.0f);
    return {bin + (label ? LOGIT_BINS : 0), weight > 0 ? weight : 0, smaller(at - static_cast<f32>(bin), 1.0f)};
}

ST_KERNEL void score_binary(i64 rows, const f32 *z_r, const f32 *loss_r, const f32 *label_r, const f32 *weight_r,
                            const f64 *base_classes_2, StepBlock *step, f64 *loss_4, f64 *classes_2, f64 *hits_2,
                            i64 *rows_1, f64 *histogram_lbm) {
    ST_ROWS(once, 1) {
        f64 totals[5];
        sums(rows, totals, [&](i64 r, f64 *its) ST_LAMBDA {
            const f32 weight = weight_r[r] > 0 ? weight_r[r] : 0.0f;
            its[0] = f64(weight) * loss_r[r];
            its[1] = weight > 0 ? f64(weight) * label_r[r] : 0.0;
            its[2] = (z_r[r] >= 0) == (label_r[r] >= 0.5f) ? f64(weight) : 0.0;
            its[3] = weight > 0 ? 1.0 : 0.0;
            its[4] = weight > 0 && weight != 1 ? 1.0 : 0.0;
        });
        const auto [loss, label, right, count, other_weights] = totals;
        f64 seen0 = base_classes_2[0] + classes_2[0], seen1 = base_classes_2[1] + classes_2[1];
        ConstantScore constant;
        if (other_weights == 0 && abs(seen1 - seen0) > count) {
            constant = score_constant_far(seen0, seen1, count - label, label);
            meet();
            ST_FIRST_LANE {
                classes_2[0] += count - label;
                classes_2[1] += label;
            }
        } else {
            auto class_of = [&](i64 r) { return label_r[r] >= 0.5f ? i64(1) : i64(0); };
            constant = score_constant(rows, 2, base_classes_2, classes_2, weight_r, class_of);
        }
        ST_FIRST_LANE {
            loss_4[0] += loss;
            loss_4[1] += step->weight_sum;
            loss_4[2] += constant.loss;
            hits_2[0] += right;
            hits_2[1] += constant.right;
            rows_1[0] += static_cast<i64>(count);
            step->loss_sum = loss;
            step->not_finite |= not_finite(loss);
        }
        add_moments_in_order(
            rows, histogram_lbm, [&](i64 r) { return moments_of_logit(z_r[r], label_r[r] >= 0.5f, weight_r[r]); });
    }
}
ST_EXPORT(score_binary)
