// One worker's part of a round: starts from the mean, trains its slots, publishes its vector. The same for a plan that
// is done with a step when it returns and for one that runs ahead on a device.
#pragma once
#include <functional>
#include <vector>

#include "plan/plan.h"
#include "train/step_filler.h"

namespace st {

class WorkerRound {
  public:
    WorkerRound(Arena &arena, WorkerEnd &end, const StepFiller &filler);

    WorkerMemory memory() const { return arena_.memory(end_.worker()); }   // what its plan is bound to

    // The rate of a round by the lineage's steps before it and what a schedule has left of it; without one it is the
    // run's.
    void follow(std::function<f32(i64 steps, f64 left)> rate_of) { rate_of_ = std::move(rate_of); }

    // The round is over, whoever averaged it: the next call of train() begins one.
    void leave() { in_round_ = false; }
    // The same in a run, where the next round begins from this one's mean. A single worker has that already, unless
    // something changes it after the fold: that saves a pass over the whole state.
    void leave_for_next() {
        in_round_ = false;
        if (mean_is_own_ && weight_sum_ > 0 && !end_.joins()) mean_round_ = round_;
    }

    // Trains the worker's slots of the open round and publishes its vector: true; false at the deadline, to be called
    // again, or when there is nothing more to wait for.
    bool train(Plan &plan, i64 deadline_ns);

  private:
    // begin() restores the start of the open round in the worker's vector; restart() does, again where the round was
    // begun before; next_slot() gives the worker's next slot number, or
    // one of the below; collect() notes the results of the steps in flight; after_step() notes one and is false when
    // the slot must be left out and the round done again.
    static constexpr i64 NO_MORE = -1, AT_DEADLINE = -2;
    void begin();
    void restart(Plan &plan);
    i64 next_slot(i64 deadline_ns);
    void enqueue(Plan &plan, i64 slot);
    void collect(Plan &plan);
    bool after_step(const StepBlock &step, i64 slot);
    RoundStart start() const;
    void publish();
    bool skipped(i64 slot) const;
    bool has_weight(const u8 *slot) const;
    // The first round of a lineage: base := moments of all its slots, once it is closed; false at the deadline.
    bool statistics_pass(i64 deadline_ns);

    Arena &arena_;
    WorkerEnd &end_;
    const StepFiller &filler_;
    std::vector<i64> rejected_;      // slots of this round left out because they were not finite
    bool mean_is_own_ = false;
    i64 mean_round_ = -1;            // whose mean is in this worker's state, where it is known to be
    i64 round_ = -1, first_slot_ = 0, index_ = 0;   // index_: the worker's own slots of the round handed out so far
    std::vector<i64> in_flight_;     // slots whose steps are enqueued and not collected, in order
    i64 base_steps_ = 0, steps_ = 0; // steps_: those of this round that change parameters, enqueued ones counted
    std::function<f32(i64 steps, f64 left)> rate_of_;
    const StateBlock *standing_ = nullptr;   // of the schedule, where it has one
    f32 rate_ = 0;                   // of this round
    f64 weight_sum_ = 0;
    u64 steps_offset_ = 0;           // of the optimizer step counter in the statistics part
    u64 weights_offset_ = 0;         // of the weights in a slot
    bool has_steps_ = false, in_round_ = false, statistics_done_ = false;
};

}  // namespace st
