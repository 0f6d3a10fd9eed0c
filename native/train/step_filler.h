// What a step needs beyond its slot, from the words of the run.
#pragma once
#include "base/rng.h"
#include "ring/worker_end.h"

namespace st {

class StepFiller {
    static constexpr u64 STEPS = u64{1} << 63;   // apart from what parameters start from (kernels/uniform.h)

  public:
    explicit StepFiller(const WorkerEnd &end) : end_(end) {}

    // `slot` is the `in_round`-th of the round; `optimizer_step` counts those of the lineage from 1. Random numbers go
    // by seed, round and place in it, and so by worker and step: not by who trains them, or when.
    void fill(StepBlock &step, i64 slot, i64 round, i64 in_round, i64 optimizer_step, f32 rate) const {
        step.rows = static_cast<i32>(end_.rows_of(slot));
        step.learning_rate = rate;
        step.number = optimizer_step;
        step.loss_sum = step.objective_sum = step.weight_sum = 0;
        step.not_finite = 0;
        const u64 number = static_cast<u64>(end_.in_lineage(round));
        const Philox key = philox(end_.seed(), number, STEPS | static_cast<u64>(in_round));
        step.random = u64{key.word[1]} << 32 | key.word[0];
    }

  private:
    const WorkerEnd &end_;
};

}  // namespace st
