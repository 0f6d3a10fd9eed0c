// Scores a mean as a model of its own: a plan over a copy, since a step trains what it scores.
#pragma once
#include <cstring>

#include "plan/plan.h"
#include "state/state.h"

namespace st {

// A plan with the memory it is bound to: a state, a base and a share of its own.
class MeanScorer {
  public:
    MeanScorer() = default;
    MeanScorer(Plan &plan, u8 *state, u8 *base, u8 *share) : plan_(&plan), state_(state), base_(base), share_(share) {}
    explicit operator bool() const { return plan_ != nullptr; }

    // Takes the mean's state; the step block that comes back is to be filled before score().
    StepBlock &begin(const StateLayout &layout, const u8 *mean) {
        const u64 statistics_bytes = layout.state_bytes - layout.learned_bytes;
        std::memcpy(state_, mean, layout.learned_bytes);
        std::memcpy(base_, mean + layout.learned_bytes, statistics_bytes);
        std::memset(share_, 0, statistics_bytes);
        return plan_->step();
    }
    // Leaves the loss on the slot in the step block.
    void score(const u8 *slot) {
        plan_->begin_round();
        if (plan_->step().rows > 0) plan_->train(slot);
    }

  private:
    Plan *plan_ = nullptr;
    u8 *state_ = nullptr, *base_ = nullptr, *share_ = nullptr;
};

}  // namespace st
