// What part of the batch a row is: its weight times this. In double: 1 / weight sum is infinite in float below 3e-39,
// which a batch of few rows of tiny weight reaches.
#pragma once
#include "base/lane.h"
#include "base/step.h"

namespace st {
inline namespace ST_ISA {

// 0 where the batch has no weight.
ST_INLINE f64 share_of_weight(const StepBlock *step) { return step->weight_sum > 0 ? 1.0 / step->weight_sum : 0.0; }

}  // namespace ST_ISA
}  // namespace st
