// The weighted mean of vectors, at the speed of memory.
#pragma once
#include <vector>

#include "base/types.h"

namespace st {

// to := sum over vectors, in order, of share x value in float64, rounded once; a single vector as it is.
void weighted_mean(const std::vector<const f32 *> &vectors, const std::vector<f64> &shares, u64 count, f32 *to);

}  // namespace st
