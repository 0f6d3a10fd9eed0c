// A compiled model on the CPU: flat lists of kernel calls over one workspace. Built once; a step allocates nothing.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/thunk.h"
#include "plan/plan.h"

namespace st {

// What a kernel's argument is: its own bits, the address of a byte offset in one of the plan's memories, or a size that
// goes with the rows of the batch.
enum class Memory : u32 { value = 0, work = 1, state = 2, base = 3, share = 4, slot = 5, step = 6, per_row = 7 };
constexpr const char *memory_names[] = {"value", "work", "state", "base", "share", "slot", "step", "per_row"};

struct PlanArgument {
    Memory memory;
    u64 bits;   // value: the argument's bits; per_row: the size for each row; else the offset in bytes
};

struct PlanCall {
    std::string kernel, types;
    std::vector<PlanArgument> arguments;
};

struct PlanDescription {
    std::vector<PlanCall> train, predict;
    u64 workspace_bytes = 0;
    std::vector<std::pair<u64, std::string>> constants;   // workspace offset, content
    u64 output_offset = 0;                                // in the workspace
    u32 rows = 0, width = 0;
    std::string isa;                                      // empty: the selected one
};

// Addresses the plan is bound to for its life; all 64-byte aligned.
// base and share may be null for a plan that only predicts.
struct PlanMemory {
    u8 *state = nullptr;
    const u8 *base = nullptr;
    u8 *share = nullptr;
};

class CpuPlan final : public Plan {
  public:
    CpuPlan(const PlanDescription &description, PlanMemory memory);   // throws Mistake
    CpuPlan(const CpuPlan &) = delete;
    CpuPlan &operator=(const CpuPlan &) = delete;

    StepBlock &step() override { return *step_; }
    void train(const u8 *slot) override;
    void predict(const u8 *slot) override;
    const f32 *output() const override { return reinterpret_cast<const f32 *>(workspace_.get() + output_offset_); }
    u32 rows() const override { return rows_; }
    u32 width() const override { return width_; }

  private:
    struct Call {
        Thunk thunk;
        u32 first_pointer;
    };
    struct SlotCell {      // cells that are set to slot + offset before a phase runs
        u32 cell;
        u64 offset;
    };
    struct RowCell {       // cells that are set to rows x times: work goes up to the rows present
        u32 cell;
        u64 times;
    };
    struct Phase {
        std::vector<Call> calls;
        std::vector<SlotCell> slot_cells;
        std::vector<RowCell> row_cells;
    };
    struct Free {
        void operator()(u8 *bytes) const;
    };

    Phase compile(const std::vector<PlanCall> &calls, const std::string &isa, PlanMemory memory);
    u64 cell_bits(const PlanArgument &argument, PlanMemory memory) const;
    void run(const Phase &phase, const u8 *slot);

    std::unique_ptr<u8, Free> workspace_;   // the step block, then the description's workspace
    StepBlock *step_ = nullptr;
    std::vector<u64> cells_;                // arguments of all calls
    std::vector<void *> pointers_;          // pointers_[i] = &cells_[i]
    Phase train_, predict_;
    u64 output_offset_;
    u32 rows_, width_;
};

}  // namespace st
