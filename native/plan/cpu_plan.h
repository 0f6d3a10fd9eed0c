// A compiled model on the CPU: flat lists of kernel calls over one workspace. Built once; a step allocates nothing.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/thunk.h"
#include "plan/plan.h"

namespace st {

// What a kernel's argument is: its own bits, the address of a byte offset in one of the plan's memories, a size that
// goes with the rows at hand, or those before them, or which tile of the batch they are (see kernels/chain_sum.h).
enum class Memory : u32 {
    value = 0, work = 1, state = 2, base = 3, share = 4, slot = 5, step = 6, per_row = 7, before = 8, turn = 9
};
constexpr const char *memory_names[] = {
    "value", "work", "state", "base", "share", "slot", "step", "per_row", "before", "turn"};

struct PlanArgument {
    Memory memory;
    u64 bits;        // value: its own; per_row, before: the size for each row; turn: 0; else the offset in bytes
    u64 row_bytes;   // work, slot: what lies elsewhere for each tile, so much further for each row before it; else 0
};

// A kernel, or with none the `outside`-th call out of the plan.
struct PlanCall {
    std::string kernel, types;
    std::vector<PlanArgument> arguments;
    u32 outside = 0;
};

// A call out of a plan, to what is no kernel, on the rows present in the slot at this address.
using Outside = std::function<void(i64 rows, u64 slot)>;

// Calls one after the other: for the whole batch, or all of them for its first tile, then for the next.
struct PlanStretch {
    bool by_tiles;
    std::vector<PlanCall> calls;
};

struct PlanDescription {
    std::vector<PlanStretch> train, predict;
    u64 workspace_bytes = 0;
    std::vector<std::pair<u64, std::string>> constants;   // workspace offset, content
    u64 output_offset = 0;                                // in the workspace
    u32 rows = 0, width = 0;
    std::string isa;                                      // empty: the selected one
    u32 outside = 0;                                      // calls out of the plan
    u32 tile_rows = 0;                                    // above 0 where a stretch is by tiles
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

    // Before a phase that has the call runs; stays as long as the plan.
    void set_outside(u32 at, Outside call) { outside_.at(at) = std::move(call); }
    u8 *work() const;   // the description's workspace

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
    struct MovingCell {    // cells that are set to an address, or slot + offset, and what lies before the tile
        u32 cell;
        bool in_slot;
        u64 start, row_bytes;
    };
    struct RowCell {       // cells that are set to rows x times: of those at hand, or those before them
        u32 cell;
        u64 times;
    };
    struct Stretch {
        bool by_tiles;
        std::vector<Call> calls;
        std::vector<MovingCell> moving_cells;
        std::vector<RowCell> row_cells, before_cells;
        std::vector<u32> turn_cells;
    };
    using Phase = std::vector<Stretch>;
    struct Free {
        void operator()(u8 *bytes) const;
    };

    Phase compile(const std::vector<PlanStretch> &stretches, const std::string &isa, PlanMemory memory);
    Stretch compile(const PlanStretch &described, const std::string &isa, PlanMemory memory);
    void compile_argument(Stretch &stretch, const PlanArgument &argument, PlanMemory memory);
    void compile_outside(Stretch &stretch, u32 at);
    u32 add_cell(u64 bits);
    u64 cell_bits(const PlanArgument &argument, PlanMemory memory) const;
    void run(const Phase &phase, const u8 *slot);
    void run(const Stretch &stretch, const u8 *slot, i64 first, i64 rows, u64 turn);

    std::unique_ptr<u8, Free> workspace_;   // the step block, then the description's workspace
    StepBlock *step_ = nullptr;
    std::vector<u64> cells_;                // arguments of all calls
    std::vector<void *> pointers_;          // pointers_[i] = &cells_[i]
    std::vector<Outside> outside_;
    Phase train_, predict_;
    u64 output_offset_;
    u32 rows_, width_, tile_rows_;
};

}  // namespace st
