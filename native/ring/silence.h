// Whether the coordinator has stopped beating, as another process sees it: what a run's other processes leave by.
#pragma once
#include <algorithm>

#include "ring/words.h"

namespace st {

// Silence is counted in looks. A look adds no more than a second, so that a process that was stopped itself, or slept
// with the whole machine, does not take its own sleep for the coordinator's silence.
class Silence {
  public:
    static constexpr i64 LIMIT_NS = 10'000'000'000;   // then the run is taken for dead

    bool lasts(const CoordinatorWords &coordinator) { return lasts(coordinator.heartbeat_ns.load(), monotonic_ns()); }

    // `beat_ns`: the newest beat, 0 before the first.
    bool lasts(i64 beat_ns, i64 now_ns) {
        if (beat_ns != beat_ns_) silent_ns_ = 0;
        else silent_ns_ += std::min(now_ns - looked_ns_, LOOK_NS);
        beat_ns_ = beat_ns;
        looked_ns_ = now_ns;
        return beat_ns != 0 && silent_ns_ > LIMIT_NS;
    }

  private:
    static constexpr i64 LOOK_NS = 1'000'000'000;   // all look ten times as often while they wait

    i64 beat_ns_ = 0, looked_ns_ = 0, silent_ns_ = 0;
};

}  // namespace st
