// sum -- the shares, added in worker order, and then added to what was known.
#pragma once
#include <functional>

#include "state/parts.h"

namespace st::rules {

using Summed = parts::Stored<f64, i64>;

inline void join_sum(const StateBlock &block, const RoundStart &, const Contributions &all, u8 *joined) {
    Summed::with_type_of(block, [&]<class T>() { parts::joined_by<T>(block, all, joined, std::plus<>()); });
}

inline void fold_sum(const StateBlock &block, const RoundStart &start, u8 *mean) {
    Summed::with_type_of(block, [&]<class T>() { parts::folded_by<T>(block, start, mean, std::plus<>()); });
}

constexpr Rule sum{Summed::dtypes, Part::statistics, false,
                   parts::gathered_from_zero, parts::as_stepped, join_sum, fold_sum, parts::whole};

}  // namespace st::rules
