// learned -- the workers' values weighted by their weight sums (state/mean.h); the start's where nobody trained.
#pragma once
#include "state/mean.h"
#include "state/parts.h"

namespace st::rules {

using LearnedValue = f32;

inline void fold_learned(const StateBlock &block, const RoundStart &start, const Contributions &all, u8 *mean) {
    std::vector<const LearnedValue *> vectors;
    std::vector<f64> shares;
    for (const Contribution &worker : all.workers) {
        if (!(worker.weight_sum > 0)) continue;
        vectors.push_back(reinterpret_cast<const LearnedValue *>(worker.vector + block.offset));
        shares.push_back(worker.weight_sum / all.weight_sum);
    }
    if (vectors.empty()) std::memcpy(mean + block.offset, start.mean + block.offset, block.bytes());
    else weighted_mean(vectors, shares, block.count(), reinterpret_cast<LearnedValue *>(mean + block.offset));
}

constexpr Rule learned{parts::dtype_of(LearnedValue{}), Part::learned, false,
                       parts::trained_from_start, parts::as_stepped, fold_learned, parts::whole};

}  // namespace st::rules
