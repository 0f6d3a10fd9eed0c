// A compiled model on the CPU: flat lists of kernel calls over one workspace. Built once; a step allocates nothing.
#pragma once
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "plan/description.h"
#include "plan/plan.h"
#include "plan/thread_calls.h"
#include "plan/tile_order.h"
#include "plan/tile_threads.h"

namespace st {

constexpr u32 MAX_PLAN_THREADS = 64;

class CpuPlan final : public Plan {
  public:
    CpuPlan(const PlanDescription &description, PlanMemory memory);   // throws Mistake
    CpuPlan(const CpuPlan &) = delete;
    CpuPlan &operator=(const CpuPlan &) = delete;

    // Before a phase that has the call runs; stays as long as the plan.
    void set_outside(u32 at, Outside call) { outside_.at(at) = std::move(call); }
    u8 *work() const;   // the description's workspace

    StepBlock &step() override { return *step_; }
    void run(Phase phase, const u8 *slot) override;
    const f32 *output() const override { return reinterpret_cast<const f32 *>(workspace_.get() + output_offset_); }
    u32 rows() const override { return rows_; }
    u32 width() const override { return width_; }

  private:
    struct Stretch {
        std::vector<ThreadCalls> of_thread;   // one where there is nothing to deal
    };
    using Stretches = std::vector<Stretch>;
    struct Free {
        void operator()(u8 *bytes) const;
    };
    using Bytes = std::unique_ptr<u8, Free>;

    static Bytes zeroed(u64 bytes);
    Stretches compile(const std::vector<PlanStretch> &described, const PlanDescription &description,
                      PlanMemory memory);
    void run_tiles(Stretch &stretch, const u8 *slot, i64 rows);

    Bytes workspace_;            // the step block, then the description's workspace
    std::vector<Bytes> own_;     // by thread; the first has none
    StepBlock *step_ = nullptr;
    std::vector<Outside> outside_;
    u64 output_offset_;
    u32 rows_, width_, tile_rows_;
    std::array<Stretches, phase_count> phases_;
    std::unique_ptr<TileOrder> order_;       // with threads
    std::unique_ptr<TileThreads> threads_;   // last: they use all of it
};

}  // namespace st
