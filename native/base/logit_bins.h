// The bins of a logit that scores of a binary model are counted in, and what is summed in each. Python asks for these.
#pragma once
#include "base/types.h"

namespace st {

constexpr i32 LOGIT_BINS = 1536;       // in all; those beyond LOGIT_EVEN_TO widen, so that no logit is left out
constexpr i32 LOGIT_BINS_OF_ONE = 48;  // for 1 of the logit
constexpr i32 LOGIT_EVEN_TO = 12;      // on both sides
constexpr i32 LOGIT_MOMENTS = 3;       // weight, weight x, weight x^2, x the place in the bin from 0 to 1

}  // namespace st
