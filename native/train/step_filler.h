// What a step needs beyond its slot, from the words of the run.
#pragma once
#include "base/power.h"
#include "ring/worker_end.h"

namespace st {

class StepFiller {
  public:
    StepFiller(const WorkerEnd &end, f64 beta1, f64 beta2) : end_(end), beta1_(beta1), beta2_(beta2) {}

    // `optimizer_step` counts those of the lineage from 1.
    void fill(StepBlock &step, i64 slot, i64 optimizer_step) const {
        step.rows = end_.rows_of(slot);
        step.learning_rate = end_.learning_rate();
        step.beta1_power = power(beta1_, optimizer_step);
        step.beta2_power = power(beta2_, optimizer_step);
        step.loss_sum = step.weight_sum = 0;
        step.not_finite = 0;
    }

  private:
    const WorkerEnd &end_;
    f64 beta1_, beta2_;
};

}  // namespace st
