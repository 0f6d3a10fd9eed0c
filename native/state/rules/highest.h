// highest -- how many steps changed parameters: of the workers, who step side by side, the one with most.
#pragma once
#include <algorithm>

#include "state/parts.h"

namespace st::rules {

using HighestValue = i64;

inline void share_highest(const StateBlock &block, const RoundStart &, const WorkerMemory &own, i64 steps) {
    const HighestValue *base = reinterpret_cast<const HighestValue *>(own.base + block.part_offset);
    HighestValue *share = reinterpret_cast<HighestValue *>(own.share + block.part_offset);
    for (u64 i = 0; i < block.count(); ++i) share[i] = base[i] + steps;
}

inline HighestValue higher(HighestValue a, HighestValue b) { return std::max(a, b); }

inline void join_highest(const StateBlock &block, const RoundStart &, const Contributions &all, u8 *joined) {
    parts::joined_by<HighestValue>(block, all, joined, higher);
}

inline void fold_highest(const StateBlock &block, const RoundStart &start, u8 *mean) {
    parts::folded_by<HighestValue>(block, start, mean, higher);
}

constexpr Rule highest{parts::dtype_of(HighestValue{}), Part::statistics, false,
                       parts::gathered_from_zero, share_highest, join_highest, fold_highest, parts::whole};

}  // namespace st::rules
