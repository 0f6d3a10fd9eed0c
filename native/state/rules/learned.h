// learned -- the workers' values weighted by their weight sums (state/mean.h); the start's where nobody trained.
#pragma once
#include "state/mean.h"
#include "state/parts.h"

namespace st::rules {

using LearnedValue = f32;

inline void join_learned(const StateBlock &block, const RoundStart &start, const Contributions &all, u8 *joined) {
    std::vector<const LearnedValue *> vectors;
    std::vector<f64> shares;
    for (const Contribution &each : all.each) {
        if (!(each.weight_sum > 0)) continue;
        vectors.push_back(reinterpret_cast<const LearnedValue *>(each.vector + block.offset));
        shares.push_back(each.weight_sum / all.weight_sum);
    }
    if (vectors.empty()) std::memcpy(joined + block.offset, start.mean + block.offset, block.bytes());
    else weighted_mean(vectors, shares, block.count(), reinterpret_cast<LearnedValue *>(joined + block.offset));
}

constexpr Rule learned{parts::dtype_of(LearnedValue{}), Part::learned, false,
                       parts::trained_from_start, parts::as_stepped, join_learned, parts::as_joined, parts::whole};

}  // namespace st::rules
