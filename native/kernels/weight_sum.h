// The batch's weight sum, into the step block: what losses divide by; padding has weight 0.
#pragma once
#include "base/kernel.h"

ST_KERNEL void weight_sum(i64 rows, const f32 *weight_r, StepBlock *step) {
    ST_ROWS(once, 1) {
        f64 total = sum<f64>(rows, [&](i64 r) { return weight_r[r] > 0 ? f64(weight_r[r]) : 0.0; });
        ST_FIRST_LANE step->weight_sum = total;
    }
}
ST_EXPORT(weight_sum)
