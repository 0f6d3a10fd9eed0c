// The last worker to publish its vector makes the round's result: judges whether the model diverges, averages,
// closes the window that has its rows, and scores the mean where that is asked for. Where a run joins, the result is
// the workers' contribution to a mean that is folded elsewhere (train/contribution_fold.h), and nothing else is done.
#pragma once
#include "ring/window_ring.h"
#include "train/mean_scorer.h"
#include "train/step_filler.h"

namespace st {

class Averager {
  public:
    Averager(Arena &arena, WorkerEnd &end, const StepFiller &filler)
        : arena_(arena), end_(end), filler_(filler), windows_(arena, arena.window_rows()) {}

    // Scores every mean on its round's last slot.
    void score_means(MeanScorer scorer) { scorer_ = scorer; }

    // The open round, which all have published and this worker has the claim of; false where the model diverges.
    bool average();

  private:
    // Half of the newest slots, a round's worth of them at least, were rejected.
    bool diverges(i64 round, i64 first_slot, i64 slots);
    void average_into(i64 round, u8 *mean);
    void score_mean(i64 round, i64 last_slot, i64 slots, u8 *mean);

    Arena &arena_;
    WorkerEnd &end_;
    const StepFiller &filler_;
    MeanScorer scorer_;
    WindowRing windows_;
};

}  // namespace st
