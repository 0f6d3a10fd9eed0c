// count -- what was known and each worker's share, in whole numbers.
#pragma once
#include "state/parts.h"

namespace st::rules {

using CountValue = i64;

inline void fold_count(const StateBlock &block, const RoundStart &start, const Contributions &all, u8 *mean) {
    parts::folded<CountValue>(block, start, all, mean, [](CountValue a, CountValue b) { return a + b; });
}

constexpr Rule count{parts::dtype_of(CountValue{}), Part::statistics, false,
                     parts::gathered_from_zero, parts::as_stepped, fold_count, parts::whole};

}  // namespace st::rules
