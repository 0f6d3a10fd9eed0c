// extremes -- of columns (count, least, greatest): of the start and of all shares that have seen a value.
#pragma once
#include <algorithm>

#include "state/parts.h"

namespace st::rules {

struct Extremes {
    f64 count, least, greatest;
};

inline void add_extremes(const StateBlock &block, const u8 *from, u8 *into) {
    const Extremes *share = reinterpret_cast<const Extremes *>(from + block.offset);
    Extremes *to = reinterpret_cast<Extremes *>(into + block.offset);
    for (u64 c = 0; c < block.bytes() / sizeof(Extremes); ++c) {
        if (!(share[c].count > 0)) continue;
        to[c].least = to[c].count > 0 ? std::min(to[c].least, share[c].least) : share[c].least;
        to[c].greatest = to[c].count > 0 ? std::max(to[c].greatest, share[c].greatest) : share[c].greatest;
        to[c].count += share[c].count;
    }
}

inline void join_extremes(const StateBlock &block, const RoundStart &, const Contributions &all, u8 *joined) {
    std::memset(joined + block.offset, 0, block.bytes());
    for (const Contribution &each : all.each) add_extremes(block, each.vector, joined);
}

// What nobody has seen is the start's; least and greatest do not depend on an order.
inline void fold_extremes(const StateBlock &block, const RoundStart &start, u8 *mean) {
    const Extremes *known = reinterpret_cast<const Extremes *>(start.mean + block.offset);
    Extremes *to = reinterpret_cast<Extremes *>(mean + block.offset);
    add_extremes(block, start.mean, mean);
    for (u64 c = 0; c < block.bytes() / sizeof(Extremes); ++c)
        if (!(to[c].count > 0)) to[c] = known[c];
}

constexpr Rule extremes{Dtype::f64, Part::statistics, false,
                        parts::gathered_from_zero, parts::as_stepped, join_extremes, fold_extremes, parts::whole};

}  // namespace st::rules
