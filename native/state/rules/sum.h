// sum -- what was known and each worker's share, added in worker order.
#pragma once
#include "state/parts.h"

namespace st::rules {

using Summed = parts::Stored<f64, i64>;

inline void fold_sum(const StateBlock &block, const RoundStart &start, const Contributions &all, u8 *mean) {
    Summed::with_type_of(block, [&]<class T>() {
        parts::folded<T>(block, start, all, mean, [](T a, T b) { return a + b; });
    });
}

constexpr Rule sum{Summed::dtypes, Part::statistics, false,
                   parts::gathered_from_zero, parts::as_stepped, fold_sum, parts::whole};

}  // namespace st::rules
