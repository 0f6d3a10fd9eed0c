// window -- the scores at the beginning of the open window, and how many windows have closed. No step reads or changes
// it; the averager writes it where a window closes (ring/window_ring.h).
#pragma once
#include "state/parts.h"

namespace st::rules {

inline void begin_window(const StateBlock &, const RoundStart &, const WorkerMemory &) {}

constexpr Rule window{parts::Stored<f64, i64>::dtypes, Part::statistics, false,
                      begin_window, parts::as_stepped, parts::left_alone, parts::as_started, parts::whole};

}  // namespace st::rules
