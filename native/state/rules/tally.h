// tally -- the distinct logits of the open window (base/tally.h): the shares merged in worker order, then with those
// known. Only what a tally uses is touched, so that an empty one costs nothing. The averager begins it anew when
// a window closes (ring/window_ring.h).
#pragma once
#include "state/parts.h"
#include "state/tally_sum.h"

namespace st::rules {

inline void begin_tally(const StateBlock &block, const RoundStart &start, const WorkerMemory &own) {
    const f64 *known = reinterpret_cast<const f64 *>(start.mean + block.offset);
    f64 *base = reinterpret_cast<f64 *>(own.base + block.part_offset);
    f64 *share = reinterpret_cast<f64 *>(own.share + block.part_offset);
    std::memcpy(base, known, static_cast<u64>(tally_used(tally_count(known))) * sizeof(f64));
    tally_clear(share, 0);
}

inline void join_tally(const StateBlock &block, const RoundStart &, const Contributions &all, u8 *joined) {
    TallySum sum;
    for (const Contribution &each : all.each) sum.add(reinterpret_cast<const f64 *>(each.vector + block.offset));
    sum.write(reinterpret_cast<f64 *>(joined + block.offset));
}

inline void fold_tally(const StateBlock &block, const RoundStart &start, u8 *mean) {
    TallySum sum;
    sum.add(reinterpret_cast<const f64 *>(start.mean + block.offset));
    sum.add(reinterpret_cast<const f64 *>(mean + block.offset));
    sum.write(reinterpret_cast<f64 *>(mean + block.offset));
}

constexpr Rule tally{Dtype::f64, Part::statistics, false, begin_tally, parts::as_stepped,
                     join_tally, fold_tally, parts::whole};

}  // namespace st::rules
