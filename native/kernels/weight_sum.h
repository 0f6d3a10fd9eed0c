// The batch's weight sum and how many rows have a weight, into the step block: what losses divide by, and figures are
// of; padding has weight 0.
#pragma once
#include "base/kernel.h"

ST_KERNEL void weight_sum(i64 rows, const f32 *weight_r, StepBlock *step) {
    ST_ROWS(once, 1) {
        f64 totals[2];
        sums(rows, totals, [&](i64 r, f64 *its) ST_LAMBDA {
            its[0] = weight_r[r] > 0 ? f64(weight_r[r]) : 0.0;
            its[1] = weight_r[r] > 0 ? 1.0 : 0.0;
        });
        ST_FIRST_LANE {
            step->weight_sum = totals[0];
            step->active_rows = static_cast<i32>(totals[1]);
        }
    }
}
ST_EXPORT(weight_sum)
