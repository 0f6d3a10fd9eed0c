// local -- kept for each worker and never mixed: optimizer state that is not averaged.
#pragma once
#include "state/parts.h"

namespace st::rules {

using LocalValue = f32;

inline void join_local(const StateBlock &block, const RoundStart &, const Contributions &all, u8 *joined) {
    for (u32 worker = 0; worker < all.each.size(); ++worker)
        std::memcpy(joined + block.in_mean(worker), all.each[worker].vector + block.offset, block.bytes());
}

inline void write_local(const StateBlock &block, u32 workers, std::vector<StateBlock> &published) {
    for (u32 worker = 0; worker < workers; ++worker) {
        StateBlock its = block;
        its.name += "@" + std::to_string(worker);
        its.shape.insert(its.shape.begin(), 1);
        its.offset = block.in_mean(worker);
        published.push_back(std::move(its));
    }
}

constexpr Rule local{parts::dtype_of(LocalValue{}), Part::learned, true,
                     parts::trained_from_start, parts::as_stepped, join_local, parts::as_joined, write_local};

}  // namespace st::rules
