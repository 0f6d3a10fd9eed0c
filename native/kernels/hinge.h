// With s = 1 for label 1 and -1 for 0: loss = max(0, 1 - s z), its slope -s where that is above 0. The loss of a NaN
// stays one.
#pragma once
#include "base/kernel.h"

ST_KERNEL void hinge(i64 rows, const f32 *z_r, const f32 *label_r, const f32 *weight_r, const StepBlock *step,
                     f32 *dz_r, f32 *loss_r) {
    each_row(rows, weight_r, step, dz_r, loss_r, [&](i64 r) -> RowLoss {
        f32 side = label_r[r] >= 0.5f ? 1.0f : -1.0f, short_of = 1.0f - side * z_r[r];
        return {short_of < 0 ? 0.0f : short_of, short_of > 0 ? -side : 0.0f};
    });
}
ST_EXPORT(hinge)

// The best constant margin by the rows before each row: 1 or -1 by the heavier class, 0 of equal ones.
ST_KERNEL void running_margin(i64 rows, const f32 *label_r, const f32 *weight_r, const f64 *base_2, const f64 *share_2,
                              f32 *z_r) {
    ST_ROWS(once, 1) {
        sum_in_order(
            rows, Two{base_2[0] + share_2[0], base_2[1] + share_2[1]},
            [&](i64 r) {
                f64 weight = weight_r[r] > 0 ? f64(weight_r[r]) : 0.0;
                return label_r[r] >= 0.5f ? Two{0, weight} : Two{weight, 0};
            },
            [&](i64 r, Two seen) {
                z_r[r] = seen.second > seen.first ? 1.0f : seen.second < seen.first ? -1.0f : 0.0f;
                return Two{0, 0};
            });
    }
}
ST_EXPORT(running_margin)
