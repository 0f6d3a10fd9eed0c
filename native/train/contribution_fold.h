// Folds contributions that were joined elsewhere into the newest mean of an arena: the next round's result, as an
// averager leaves it. A window closes that has WINDOW_ROWS, whatever the settings of the hosts. The arena has no worker
// of its own at work.
#pragma once
#include <utility>
#include <vector>

#include "ring/window_ring.h"
#include "ring/worker_end.h"

namespace st {

class ContributionFold {
  public:
    explicit ContributionFold(Arena &arena)
        : layout_(arena.state_layout()), end_(arena, 0), windows_(arena, WINDOW_ROWS) {
        check_joins(layout_);
    }

    // Whether a window closed. What a lineage's first round begins from is in the contributions.
    bool fold(std::vector<Contribution> contributions) {
        const i64 round = end_.open_round();
        const i32 buffer = end_.free_buffer(round);
        u8 *mean = end_.mean(buffer);
        fold_round(layout_, {end_.start_of(round)}, std::move(contributions), mean);
        const bool closed = windows_.close(mean, end_.windows_allowed());
        end_.close_window(round, closed);
        end_.finish(round, buffer, end_.first_slot_of(round));
        return closed;
    }

  private:
    const StateLayout &layout_;
    WorkerEnd end_;
    WindowRing windows_;
};

}  // namespace st
