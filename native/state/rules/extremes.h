// extremes -- of columns (count, least, greatest): of the start and of all shares that have seen a value.
#pragma once
#include <algorithm>

#include "state/parts.h"

namespace st::rules {

struct Extremes {
    f64 count, least, greatest;
};

inline void fold_extremes(const StateBlock &block, const RoundStart &start, const Contributions &all, u8 *mean) {
    Extremes *to = reinterpret_cast<Extremes *>(mean + block.offset);
    std::memcpy(to, start.mean + block.offset, block.bytes());
    for (const Contribution &worker : all.workers) {
        const Extremes *share = reinterpret_cast<const Extremes *>(worker.vector + block.offset);
        for (u64 c = 0; c < block.bytes() / sizeof(Extremes); ++c) {
            if (!(share[c].count > 0)) continue;
            to[c].least = to[c].count > 0 ? std::min(to[c].least, share[c].least) : share[c].least;
            to[c].greatest = to[c].count > 0 ? std::max(to[c].greatest, share[c].greatest) : share[c].greatest;
            to[c].count += share[c].count;
        }
    }
}

constexpr Rule extremes{Dtype::f64, Part::statistics, false,
                        parts::gathered_from_zero, parts::as_stepped, fold_extremes, parts::whole};

}  // namespace st::rules
