// The constant prediction of each row: the mean label of the rows before it, from loss_4 = (.., weight, .., weighted
// label) and the batch's own; in the label's unit, and as the score that gives it.
#pragma once
#include "base/kernel.h"

// before(r, (weight, weighted label) of the rows before row r)
template <class Before>
ST_INLINE void with_labels_before(i64 rows, const f32 *label_r, const f32 *weight_r, const f64 *base_4,
                                  const f64 *share_4, Before before) {
    sum_in_order(
        rows, Two{base_4[1] + share_4[1], base_4[3] + share_4[3]},
        [&](i64 r) {
            f64 weight = weight_r[r] > 0 ? f64(weight_r[r]) : 0.0;
            return Two{weight, weight > 0 ? weight * label_r[r] : 0.0};
        },
        [&](i64 r, Two seen) {
            before(r, seen);
            return Two{0, 0};
        });
}

// The first of all has none and counts as an error of 0.
ST_KERNEL void running_mean(i64 rows, const f32 *label_r, const f32 *weight_r, const f64 *base_4, const f64 *share_4,
                            const f32 *mean, const f32 *scale, f32 *constant_r, f32 *z_r) {
    ST_ROWS(once, 1) {
        with_labels_before(rows, label_r, weight_r, base_4, share_4, [&](i64 r, Two seen) {
            f32 constant = seen.first > 0 ? static_cast<f32>(seen.second / seen.first) : label_r[r];
            constant_r[r] = constant;
            z_r[r] = (constant - mean[0]) * scale[0];
        });
    }
}
ST_EXPORT(running_mean)

// Of counts, with half an event in half a row beforehand; its score is a logarithm.
ST_KERNEL void running_rate(i64 rows, const f32 *label_r, const f32 *weight_r, const f64 *base_4, const f64 *share_4,
                            f32 *constant_r, f32 *z_r) {
    ST_ROWS(once, 1) {
        with_labels_before(rows, label_r, weight_r, base_4, share_4, [&](i64 r, Two seen) {
            f64 rate = (seen.second + 0.5) / (seen.first + 0.5);
            constant_r[r] = static_cast<f32>(rate);
            z_r[r] = static_cast<f32>(log(rate));
        });
    }
}
ST_EXPORT(running_rate)
