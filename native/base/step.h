// What a step needs beyond its batch, read through a pointer so that a captured graph sees new values; the same on CPU.
#pragma once
#include "base/types.h"

namespace st {

struct alignas(64) StepBlock {
    i32 rows;                 // valid rows of the batch; rows behind them are zero with weight 0
    i32 active_rows;          // of a weight above 0; written by the step, as all below but the last two
    f32 learning_rate;        // of this step
    i32 not_finite;           // 1 if loss, parameters or optimizer state are not finite after the step
    f64 loss_sum;             // sum of weight x loss over the batch, before the update, in the label's unit
    f64 objective_sum;        // the same as it is minimised: of a standardised label in its deviations
    f64 weight_sum;
    f64 gradient_norm;        // before it is clipped by norm; 0 where it is not, not finite where the gradient is not
    u64 random;               // the key of this step's random numbers, see train/step_filler.h
    i64 number;               // of the lineage's steps that change parameters, from 1
};
static_assert(sizeof(StepBlock) == 64);

}  // namespace st
