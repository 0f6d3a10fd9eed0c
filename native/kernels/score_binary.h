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
        i32 counts[3];
        sums(rows, counts, [&](i64 r, i32 *its) ST_LAMBDA {
            const i32 counted = weight_r[r] > 0 ? 1 : 0, one = label_r[r] >= 0.5f ? 1 : 0;
            its[0] = counted & (weight_r[r] != 1 ? 1 : 0);
            its[1] = counted & one;
            its[2] = counted & (one ^ (z_r[r] >= 0 ? 0 : 1));
        });
        const auto [other_weights, ones, hits] = counts;
        const f64 count = static_cast<f64>(step->active_rows);
        auto weight_of = [&](i64 r) ST_LAMBDA { return f64(weight_r[r] > 0 ? weight_r[r] : 0.0f); };
        const f64 loss = sum<f64>(rows, [&](i64 r) ST_LAMBDA { return weight_of(r) * loss_r[r]; });
        f64 right = hits;   // of weights that are all 1 or 0
        if (other_weights != 0)
            right = sum<f64>(rows, [&](i64 r) ST_LAMBDA {
                return (z_r[r] >= 0) == (label_r[r] >= 0.5f) ? weight_of(r) : 0.0;
            });
        f64 seen0 = base_classes_2[0] + classes_2[0], seen1 = base_classes_2[1] + classes_2[1];
        ConstantScore constant;
        if (other_weights == 0 && abs(seen1 - seen0) > count) {
            constant = score_constant_far(seen0, seen1, count - ones, ones);
            meet();
            ST_FIRST_LANE {
                classes_2[0] += count - ones;
                classes_2[1] += ones;
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
            rows_1[0] += step->active_rows;
            step->loss_sum = step->objective_sum = loss;
            step->not_finite |= not_finite(loss);
        }
        add_moments_in_order(
            rows, histogram_lbm, [&](i64 r) { return moments_of_logit(z_r[r], label_r[r] >= 0.5f, weight_r[r]); });
    }
}
ST_EXPORT(score_binary)
