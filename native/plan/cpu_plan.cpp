#include "plan/cpu_plan.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/fail.h"
#include "base/isa.h"
#include "ring/slot.h"

namespace st {
namespace {

constexpr u64 WORK_START = sizeof(StepBlock);   // a multiple of 64
constexpr u64 OUTSIDE_CELLS = 3;                // which one, the rows present, the slot

void call_outside(void **arguments) {
    const i64 rows = *static_cast<i64 *>(arguments[1]);
    if (rows > 0) (**static_cast<Outside **>(arguments[0]))(rows, *static_cast<u64 *>(arguments[2]));
}

void check_aligned(const void *address, const char *what) {
    if (reinterpret_cast<u64>(address) % 64 != 0)
        mistake(std::string("plan: ") + what, "memory aligned to 64 bytes", "an address that is not");
}

u64 argument_count(const PlanDescription &description) {
    u64 count = 0;
    for (const auto *stretches : {&description.train, &description.predict})
        for (const PlanStretch &stretch : *stretches)
            for (const PlanCall &call : stretch.calls)
                count += call.kernel.empty() ? OUTSIDE_CELLS : call.arguments.size();
    return count;
}

}  // namespace

void CpuPlan::Free::operator()(u8 *bytes) const { std::free(bytes); }

CpuPlan::CpuPlan(const PlanDescription &description, PlanMemory memory)
    : output_offset_(WORK_START + description.output_offset), rows_(description.rows), width_(description.width),
      tile_rows_(description.tile_rows) {
    check_aligned(memory.state, "state");
    check_aligned(memory.base, "base");
    check_aligned(memory.share, "share");
    u64 bytes = WORK_START + align64(description.workspace_bytes);
    workspace_.reset(static_cast<u8 *>(std::aligned_alloc(64, bytes)));
    if (!workspace_) throw std::bad_alloc();
    std::memset(workspace_.get(), 0, bytes);   // also touches every page: no fault in the first step
    for (const auto &[offset, content] : description.constants)
        std::memcpy(work() + offset, content.data(), content.size());
    step_ = reinterpret_cast<StepBlock *>(workspace_.get());
    u64 count = argument_count(description);
    cells_.reserve(count);
    pointers_.reserve(count);
    outside_.resize(description.outside);
    const std::string &isa = description.isa.empty() ? selected_isa() : description.isa;
    train_ = compile(description.train, isa, memory);
    predict_ = compile(description.predict, isa, memory);
}

u64 CpuPlan::cell_bits(const PlanArgument &argument, PlanMemory memory) const {
    auto at = [&](const u8 *start, const char *what) {
        if (!start) mistake("plan", std::string("memory for ") + what, "none; give it to compile()");
        return reinterpret_cast<u64>(start) + argument.bits;
    };
    switch (argument.memory) {
        case Memory::work: return at(work(), "work");
        case Memory::state: return at(memory.state, "state");
        case Memory::base: return at(memory.base, "base");
        case Memory::share: return at(memory.share, "share");
        case Memory::step: return reinterpret_cast<u64>(step_);
        case Memory::slot:
        case Memory::per_row:
        case Memory::before:
        case Memory::turn: return 0;   // set at every run
        case Memory::value: break;
    }
    return argument.bits;
}

CpuPlan::Phase CpuPlan::compile(const std::vector<PlanStretch> &stretches, const std::string &isa, PlanMemory memory) {
    Phase phase;
    for (const PlanStretch &described : stretches) {
        if (described.by_tiles && tile_rows_ == 0) mistake("plan: rows of a tile", "1 or more", "0");
        phase.push_back(compile(described, isa, memory));
    }
    return phase;
}

CpuPlan::Stretch CpuPlan::compile(const PlanStretch &described, const std::string &isa, PlanMemory memory) {
    Stretch stretch{described.by_tiles, {}, {}, {}, {}, {}};
    for (const PlanCall &call : described.calls) {
        if (call.kernel.empty()) {
            compile_outside(stretch, call.outside);
            continue;
        }
        const KernelEntry *kernel = find_kernel(call.kernel.c_str(), call.types.c_str(), isa.c_str());
        if (!kernel || kernel->argument_count != call.arguments.size())
            mistake("plan: kernel " + call.kernel + "<" + call.types + ">", "one built for " + isa + " with " +
                    std::to_string(call.arguments.size()) + " arguments", "none");
        stretch.calls.push_back({kernel->thunk, static_cast<u32>(cells_.size())});
        for (const PlanArgument &argument : call.arguments) compile_argument(stretch, argument, memory);
    }
    return stretch;
}

void CpuPlan::compile_argument(Stretch &stretch, const PlanArgument &argument, PlanMemory memory) {
    u64 bits = cell_bits(argument, memory);
    u32 cell = add_cell(bits);
    bool in_slot = argument.memory == Memory::slot;
    if (in_slot || (stretch.by_tiles && argument.row_bytes > 0))
        stretch.moving_cells.push_back({cell, in_slot, in_slot ? argument.bits : bits, argument.row_bytes});
    if (argument.memory == Memory::per_row) stretch.row_cells.push_back({cell, argument.bits});
    if (argument.memory == Memory::before) stretch.before_cells.push_back({cell, argument.bits});
    if (argument.memory == Memory::turn) stretch.turn_cells.push_back(cell);
}

void CpuPlan::compile_outside(Stretch &stretch, u32 at) {
    stretch.calls.push_back({call_outside, static_cast<u32>(cells_.size())});
    add_cell(reinterpret_cast<u64>(&outside_.at(at)));
    stretch.row_cells.push_back({add_cell(0), 1});
    stretch.moving_cells.push_back({add_cell(0), true, 0, 0});
}

u32 CpuPlan::add_cell(u64 bits) {
    cells_.push_back(bits);
    pointers_.push_back(&cells_.back());   // stays: the vector was reserved
    return static_cast<u32>(cells_.size() - 1);
}

u8 *CpuPlan::work() const { return workspace_.get() + WORK_START; }

void CpuPlan::run(const Phase &phase, const u8 *slot) {
    const i64 rows = step_->rows = reinterpret_cast<const SlotHeader *>(slot)->rows;
    for (const Stretch &stretch : phase) {
        const i64 tile = stretch.by_tiles ? i64{tile_rows_} : rows;
        if (rows <= tile) {
            run(stretch, slot, 0, rows, 0);
            continue;
        }
        for (i64 first = 0; first < rows; first += tile) {
            bool last = first + tile >= rows;
            run(stretch, slot, first, last ? rows - first : tile, first == 0 ? 1 : last ? 3 : 2);
        }
    }
}

void CpuPlan::run(const Stretch &stretch, const u8 *slot, i64 first, i64 rows, u64 turn) {
    for (const MovingCell &cell : stretch.moving_cells) {
        u64 start = cell.in_slot ? reinterpret_cast<u64>(slot) + cell.start : cell.start;
        cells_[cell.cell] = start + static_cast<u64>(first) * cell.row_bytes;
    }
    for (const RowCell &cell : stretch.row_cells) cells_[cell.cell] = static_cast<u64>(rows) * cell.times;
    for (const RowCell &cell : stretch.before_cells) cells_[cell.cell] = static_cast<u64>(first) * cell.times;
    for (u32 cell : stretch.turn_cells) cells_[cell] = turn;
    for (const Call &call : stretch.calls) call.thunk(pointers_.data() + call.first_pointer);
}

void CpuPlan::train(const u8 *slot) {
    step_->loss_sum = step_->weight_sum = 0;
    step_->not_finite = 0;
    run(train_, slot);
}

void CpuPlan::predict(const u8 *slot) { run(predict_, slot); }

}  // namespace st
