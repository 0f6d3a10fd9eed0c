// sum -- what was known and each worker's share, added in worker order.
#pragma once
#include "state/parts.h"

namespace st::rules {

using SumValue = f64;

inline void fold_sum(const StateBlock &block, const RoundStart &start, const Contributions &all, u8 *mean) {
    parts::folded<SumValue>(block, start, all, mean, [](SumValue a, SumValue b) { return a + b; });
}

constexpr Rule sum{parts::dtype_of(SumValue{}), Part::statistics, false,
                   parts::gathered_from_zero, parts::as_stepped, fold_sum, parts::whole};

}  // namespace st::rules
