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

// to := a and b, of which one may be `to`.
inline void add_decayed(const StateBlock &block, const f64 *a, const f64 *b, f64 *to) {
    const f64 epoch = std::max(a[0], b[0]), newest = std::max(a[1], b[1]);
    const f64 of_a = kept_over(epoch - a[0]), of_b = kept_over(epoch - b[0]);
    for (u64 i = block.row_elements(); i < block.count(); ++i) to[i] = a[i] * of_a + b[i] * of_b;
    to[0] = epoch;
    to[1] = newest;
}

inline void join_decayed(const StateBlock &block, const RoundStart &, const Contributions &all, u8 *joined) {
    f64 *to = reinterpret_cast<f64 *>(joined + block.offset);
    std::memset(to, 0, block.bytes());
    for (const Contribution &each : all.each) {
        const f64 *share = reinterpret_cast<const f64 *>(each.vector + block.offset);
        if (!(share[0] > 0)) continue;
        if (to[0] > 0) add_decayed(block, to, share, to);
        else std::memcpy(to, share, block.bytes());
    }
}

inline void fold_decayed(const StateBlock &block, const RoundStart &start, u8 *mean) {
    const f64 *known = reinterpret_cast<const f64 *>(start.mean + block.offset);
    f64 *to = reinterpret_cast<f64 *>(mean + block.offset);
    if (!(to[0] > 0)) parts::as_started(block, start, mean);
    else if (known[0] - to[0] <= FORGOTTEN) add_decayed(block, known, to, to);
}

constexpr Rule decayed{Dtype::f64, Part::statistics, false,
                       parts::gathered_from_zero, parts::as_stepped, join_decayed, fold_decayed, parts::whole};

}  // namespace st::rules
