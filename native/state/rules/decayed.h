// decayed -- sums that halve over a half-life of event time: row 0 is (epoch, newest), in half-lives and one more, 0
// where nothing was seen; the others are as of the epoch's begin. Both sides are brought to the later epoch by a power
// of two, which changes no digit, and added. Where all that a round brought is so far behind that it would count for
// nothing ever again, what stands there was of wrong times, and goes.
#pragma once
#include <algorithm>
#include <cmath>

#include "state/parts.h"

namespace st::rules {

constexpr f64 FORGOTTEN = 1000;   // half-lives: less than any number of rows

inline f64 kept_over(f64 epochs) { return epochs > FORGOTTEN ? 0 : std::ldexp(1.0, -static_cast<int>(epochs)); }

inline void fold_decayed(const StateBlock &block, const RoundStart &start, const Contributions &all, u8 *mean) {
    f64 *to = reinterpret_cast<f64 *>(mean + block.offset);
    std::memcpy(to, start.mean + block.offset, block.bytes());
    f64 newest = 0;
    for (const Contribution &worker : all.workers)
        newest = std::max(newest, *reinterpret_cast<const f64 *>(worker.vector + block.offset));
    if (newest > 0 && to[0] - newest > FORGOTTEN) std::fill(to, to + block.count(), 0.0);
    for (const Contribution &worker : all.workers) {
        const f64 *share = reinterpret_cast<const f64 *>(worker.vector + block.offset);
        if (!(share[0] > 0)) continue;
        const f64 epoch = std::max(to[0], share[0]);
        const f64 mine = kept_over(epoch - to[0]), its = kept_over(epoch - share[0]);
        for (u64 i = block.row_elements(); i < block.count(); ++i) to[i] = to[i] * mine + share[i] * its;
        to[0] = epoch;
        to[1] = std::max(to[1], share[1]);
    }
}

constexpr Rule decayed{Dtype::f64, Part::statistics, false,
                       parts::gathered_from_zero, parts::as_stepped, fold_decayed, parts::whole};

}  // namespace st::rules
