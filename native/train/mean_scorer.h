// Scores a mean as a model of its own: a plan over a copy, since a step trains what it scores.
#pragma once
#include "plan/plan.h"
#include "state/rule.h"

namespace st {

// A plan with the memory it is bound to, which nobody else uses.
class MeanScorer {
  public:
    MeanScorer() = default;
    MeanScorer(Plan &plan, WorkerMemory memory) : plan_(&plan), memory_(memory) {}
    explicit operator bool() const { return plan_ != nullptr; }

    // Takes the mean's state; the step block that comes back is to be filled before score().
    StepBlock &begin(const StateLayout &layout, const u8 *mean) {
        begin_round(layout, {mean}, memory_);
        return plan_->step();
    }
    // Leaves the loss on the slot in the step block.
    void score(const u8 *slot) {
        plan_->begin_round();
        if (plan_->step().rows > 0) plan_->train(slot);
    }

  private:
    Plan *plan_ = nullptr;
    WorkerMemory memory_{};
};

}  // namespace st
