// Parts that several rules have in common.
#pragma once
#include <cstring>

#include "state/rule.h"

namespace st::parts {

constexpr Dtype dtype_of(f32) { return Dtype::f32; }
constexpr Dtype dtype_of(f64) { return Dtype::f64; }
constexpr Dtype dtype_of(i32) { return Dtype::i32; }
constexpr Dtype dtype_of(i64) { return Dtype::i64; }
constexpr Dtype dtype_of(u8) { return Dtype::u8; }

// The types of element that a rule takes: one more is one more here.
template <class... T>
struct Stored {
    static constexpr Dtypes dtypes{dtype_of(T{})...};

    // do_it.operator()<T>() for the one that the block has.
    template <class DoIt>
    static void with_type_of(const StateBlock &block, DoIt do_it) {
        ((block.dtype == dtype_of(T{}) ? do_it.template operator()<T>() : void()), ...);
    }
};

// begin: what is trained in place is as the start has it for this worker.
inline void trained_from_start(const StateBlock &block, const RoundStart &start, const WorkerMemory &own) {
    if (!own.has_start) std::memcpy(own.state + block.offset, start.mean + block.in_mean(own.worker), block.bytes());
}

// begin: the base is the start's, and nothing is gathered yet.
inline void gathered_from_zero(const StateBlock &block, const RoundStart &start, const WorkerMemory &own) {
    std::memcpy(own.base + block.part_offset, start.mean + block.offset, block.bytes());
    std::memset(own.share + block.part_offset, 0, block.bytes());
}

// share: as the steps have left it.
inline void as_stepped(const StateBlock &, const RoundStart &, const WorkerMemory &, i64) {}

// join: the first share, then merge(value so far, share) in their order; zeros where there is none.
template <class T, class Merge>
void joined_by(const StateBlock &block, const Contributions &all, u8 *joined, Merge merge) {
    T *to = reinterpret_cast<T *>(joined + block.offset);
    if (all.each.empty()) std::memset(to, 0, block.bytes());
    else std::memcpy(to, all.each[0].vector + block.offset, block.bytes());
    for (u64 at = 1; at < all.each.size(); ++at) {
        const T *share = reinterpret_cast<const T *>(all.each[at].vector + block.offset);
        for (u64 i = 0, n = block.count(); i < n; ++i) to[i] = merge(to[i], share[i]);
    }
}

// fold: merge(the start's value, the joined share).
template <class T, class Merge>
void folded_by(const StateBlock &block, const RoundStart &start, u8 *mean, Merge merge) {
    const T *known = reinterpret_cast<const T *>(start.mean + block.offset);
    T *to = reinterpret_cast<T *>(mean + block.offset);
    for (u64 i = 0, n = block.count(); i < n; ++i) to[i] = merge(known[i], to[i]);
}

// join: of a block that no worker contributes to.
inline void left_alone(const StateBlock &, const RoundStart &, const Contributions &, u8 *) {}

// fold: what was joined is the mean's.
inline void as_joined(const StateBlock &, const RoundStart &, u8 *) {}

// fold: the start's, whatever was joined.
inline void as_started(const StateBlock &block, const RoundStart &start, u8 *mean) {
    std::memcpy(mean + block.offset, start.mean + block.offset, block.bytes());
}

// write: as it lies in the mean.
inline void whole(const StateBlock &block, u32, std::vector<StateBlock> &published) { published.push_back(block); }

}  // namespace st::parts
