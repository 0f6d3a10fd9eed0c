// What a step needs beyond its batch, read through a pointer so that a captured graph sees new values; the same on CPU.
#pragma once
#include "base/types.h"

namespace st {

struct StepBlock {
    i64 rows;                 // valid rows of the batch; rows behind them are zero with weight 0
    // beta^n at the lineage's n-th step, from 1, by repeated multiplication (no libm: same bits everywhere)
    f64 beta1_power, beta2_power;
    f32 learning_rate;
    // written by the step
    i32 not_finite;           // 1 if loss, parameters or optimizer state are not finite after the step
    f64 loss_sum;             // sum of weight x loss over the batch, before the update
    f64 weight_sum;
    u64 pad[2];
};
static_assert(sizeof(StepBlock) == 64);

}  // namespace st
