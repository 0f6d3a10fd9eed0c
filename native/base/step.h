// What a step needs beyond its batch, read through a pointer so that a captured graph sees new values; the same on CPU.
#pragma once
#include "base/types.h"

namespace st {

struct StepBlock {
    u64 seed;
    i64 round;
    i32 worker;
    i32 step_in_round;
    i64 rows;                 // valid rows of the batch; rows behind them are zero with weight 0
    i64 optimizer_step;       // 1 for the lineage's first step: base of the round + steps in it
    f32 learning_rate;
    f32 reserved;
    f64 beta1_power, beta2_power;   // beta^optimizer_step, by repeated multiplication (no libm: same bits everywhere)
    // written by the step
    f64 loss_sum;             // sum of weight x loss over the batch, before the update
    f64 weight_sum;
    i32 not_finite;           // 1 if loss, parameters or optimizer state are not finite after the step
    i32 reserved2;
    u64 pad[5];
};
static_assert(sizeof(StepBlock) == 128);

}  // namespace st
