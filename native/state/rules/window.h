// window -- the scores at the beginning of the open window, and how many windows have closed. No step reads or changes
// it; the averager writes it where a window closes (ring/window_ring.h).
#pragma once
#include "state/parts.h"

namespace st::rules {

inline void begin_window(const StateBlock &, const RoundStart &, const WorkerMemory &) {}

inline void fold_window(const StateBlock &block, const RoundStart &start, const Contributions &, u8 *mean) {
    std::memcpy(mean + block.offset, start.mean + block.offset, block.bytes());
}

constexpr Rule window{parts::Stored<f64, i64>::dtypes, Part::statistics, false,
                      begin_window, parts::as_stepped, fold_window, parts::whole};

}  // namespace st::rules
