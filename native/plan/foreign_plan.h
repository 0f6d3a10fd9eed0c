// A plan whose phases are run by callables from outside (Python: reference and CUDA backends), offered as an st::Plan.
#pragma once
#include <array>
#include <functional>
#include <vector>

#include "plan/plan.h"
#include "ring/slot.h"

namespace st {

class ForeignPlan final : public Plan {
  public:
    struct Calls {
        std::array<std::function<void(const u8 *)>, phase_count> phases;   // none: not asked for
        std::function<void()> begin_round, end_round;
        std::function<void(const u8 *)> enqueue;      // none: a step is done when it is enqueued
        std::function<const StepBlock *()> collect;
        u32 steps_ahead = 1;
    };

    ForeignPlan(u32 rows, u32 width, Calls calls)
        : calls_(std::move(calls)), output_(u64{rows} * width), rows_(rows), width_(width) {}

    StepBlock &step() override { return step_; }
    void begin_round() override { calls_.begin_round(); }
    void end_round() override { calls_.end_round(); }
    void run(Phase phase, const u8 *slot) override {
        const auto &call = calls_.phases[static_cast<u32>(phase)];
        if (!call) no_phase(phase);
        begin_step(step_, phase, rows_in(slot));
        call(slot);
    }
    u32 steps_ahead() const override { return calls_.steps_ahead; }
    void enqueue(const u8 *slot) override {
        if (!calls_.enqueue) return run(Phase::train, slot);
        begin_step(step_, Phase::train, rows_in(slot));
        calls_.enqueue(slot);
    }
    const StepBlock *collect() override { return calls_.collect ? calls_.collect() : &step_; }
    const f32 *output() const override { return output_.data(); }
    u32 rows() const override { return rows_; }
    u32 width() const override { return width_; }

  private:
    static i64 rows_in(const u8 *slot) { return reinterpret_cast<const SlotHeader *>(slot)->rows; }

    alignas(64) StepBlock step_{};
    Calls calls_;
    std::vector<f32> output_;
    u32 rows_, width_;
};

}  // namespace st
