// One worker's side of the rounds: start from the mean, train its slots, publish its vector, average if it is the last.
// The same for a plan that is done with a step when it returns and for one that runs ahead on a device.
#pragma once
#include <string>
#include <vector>

#include "plan/plan.h"
#include "ring/arena.h"
#include "ring/silence.h"

namespace st {

enum class RoundStatus : u32 {
    working = 0,     // the deadline passed; call again
    finished = 1,    // ingest has ended and every round is averaged
    leave = 2,       // told to leave, or the coordinator has stopped beating
    diverged = 3,    // half of the last slots were rejected
};

class WorkerRounds {
  public:
    WorkerRounds(Arena &arena, u32 worker, f64 beta1, f64 beta2);

    WorkerMemory memory() const { return arena_.memory(worker_); }   // what its plan is bound to

    // Scores every mean on its round's last slot with a plan of its own, bound to `state`, `base` and `share`.
    void score_means(Plan &plan, WorkerMemory memory);

    // Waits for READY, then works until the deadline or the end.
    RoundStatus run(Plan &plan, i64 deadline_ns);

    // Trains the round that is filled and closed, publishes, and averages when every other worker has published:
    // replay, where workers take turns in one thread.
    void run_closed_round(Plan &plan);

    // Restores the round's start in the worker's vector.
    void begin();

  private:
    struct Scorer {
        Plan *plan = nullptr;
        WorkerMemory memory;
    };

    // The parts of run(). restart() begins the round, again where it was begun before; next_slot() gives the worker's
    // next slot number, -1 when the round has no more for it, -2 at the deadline; before_step() fills the step block;
    // collect() notes the results of the steps in flight; after_step() notes one and is false when the slot must be
    // left out and the round done again; publish() fixes the vector; finish() averages or waits.
    bool ready(i64 deadline_ns);
    void restart(Plan &plan);
    i64 next_slot(i64 deadline_ns);
    void before_step(StepBlock &step, i64 slot);
    void enqueue(Plan &plan, i64 slot);
    void collect(Plan &plan);
    bool after_step(const StepBlock &step, i64 slot);
    void publish();
    RoundStatus finish(i64 deadline_ns);
    bool skipped(i64 slot) const;
    bool has_weight(const u8 *slot) const;
    bool first_of_lineage() const { return round_ == 0; }
    bool round_closed() const;
    // Base := moments of all slots of the round; for a lineage's first round, once it is closed.
    void statistics_pass();
    bool published() const;
    bool done() const;
    bool must_leave();

    RoundStart start() const;
    WorkerWords &words() { return arena_.control().workers[worker_]; }
    bool all_published() const;
    RoundStatus average_round();
    bool diverges(i64 round, i64 slots);
    void average_into(i64 round, u8 *mean);
    void score(const u8 *mean, i64 slots);
    RoundStatus train_round(Plan &plan, i64 deadline_ns);

    Arena &arena_;
    u32 worker_;
    f64 beta1_, beta2_;
    std::vector<i64> rejected_;      // slots of this round left out because they were not finite
    i64 round_ = -1, first_slot_ = 0, index_ = 0;   // index_: the worker's own slots of the round handed out so far
    std::vector<i64> in_flight_;     // slots whose steps are enqueued and not collected, in order
    i64 base_steps_ = 0, steps_ = 0; // steps_: those of this round that change parameters, enqueued ones counted
    f64 weight_sum_ = 0;
    u64 steps_offset_ = 0;           // of the optimizer step counter in the statistics part
    u64 weights_offset_ = 0;         // of the weights in a slot
    Silence silence_;
    Scorer scorer_;
    bool has_steps_ = false, in_round_ = false, statistics_done_ = false;
};

}  // namespace st
