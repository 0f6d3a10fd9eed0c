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

void check_aligned(const void *address, const char *what) {
    if (reinterpret_cast<u64>(address) % 64 != 0)
        mistake(std::string("plan: ") + what, "memory aligned to 64 bytes", "an address that is not");
}

u64 argument_count(const PlanDescription &description) {
    u64 count = 0;
    for (const auto *calls : {&description.train, &description.predict})
        for (const PlanCall &call : *calls) count += call.arguments.size();
    return count;
}

}  // namespace

void CpuPlan::Free::operator()(u8 *bytes) const { std::free(bytes); }

CpuPlan::CpuPlan(const PlanDescription &description, PlanMemory memory)
    : output_offset_(WORK_START + description.output_offset), rows_(description.rows), width_(description.width) {
    check_aligned(memory.state, "state");
    check_aligned(memory.base, "base");
    check_aligned(memory.share, "share");
    u64 bytes = WORK_START + align64(description.workspace_bytes);
    workspace_.reset(static_cast<u8 *>(std::aligned_alloc(64, bytes)));
    if (!workspace_) throw std::bad_alloc();
    std::memset(workspace_.get(), 0, bytes);   // also touches every page: no fault in the first step
    for (const auto &[offset, content] : description.constants)
        std::memcpy(workspace_.get() + WORK_START + offset, content.data(), content.size());
    step_ = reinterpret_cast<StepBlock *>(workspace_.get());
    u64 count = argument_count(description);
    cells_.reserve(count);
    pointers_.reserve(count);
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
        case Memory::work: return at(workspace_.get() + WORK_START, "work");
        case Memory::state: return at(memory.state, "state");
        case Memory::base: return at(memory.base, "base");
        case Memory::share: return at(memory.share, "share");
        case Memory::step: return reinterpret_cast<u64>(step_);
        case Memory::slot:
        case Memory::per_row: return 0;   // set at every run
        case Memory::value: break;
    }
    return argument.bits;
}

CpuPlan::Phase CpuPlan::compile(const std::vector<PlanCall> &calls, const std::string &isa, PlanMemory memory) {
    Phase phase;
    for (const PlanCall &call : calls) {
        const KernelEntry *kernel = find_kernel(call.kernel.c_str(), call.types.c_str(), isa.c_str());
        if (!kernel || kernel->argument_count != call.arguments.size())
            mistake("plan: kernel " + call.kernel + "<" + call.types + ">", "one built for " + isa + " with " +
                    std::to_string(call.arguments.size()) + " arguments", "none");
        phase.calls.push_back({kernel->thunk, static_cast<u32>(cells_.size())});
        for (const PlanArgument &argument : call.arguments) {
            if (argument.memory == Memory::slot)
                phase.slot_cells.push_back({static_cast<u32>(cells_.size()), argument.bits});
            if (argument.memory == Memory::per_row)
                phase.row_cells.push_back({static_cast<u32>(cells_.size()), argument.bits});
            cells_.push_back(cell_bits(argument, memory));
            pointers_.push_back(&cells_.back());   // stays: the vector was reserved
        }
    }
    return phase;
}

void CpuPlan::run(const Phase &phase, const u8 *slot) {
    step_->rows = reinterpret_cast<const SlotHeader *>(slot)->rows;
    for (const SlotCell &cell : phase.slot_cells) cells_[cell.cell] = reinterpret_cast<u64>(slot) + cell.offset;
    for (const RowCell &cell : phase.row_cells) cells_[cell.cell] = static_cast<u64>(step_->rows) * cell.times;
    for (const Call &call : phase.calls) call.thunk(pointers_.data() + call.first_pointer);
}

void CpuPlan::train(const u8 *slot) {
    step_->loss_sum = step_->weight_sum = 0;
    step_->not_finite = 0;
    run(train_, slot);
}

void CpuPlan::predict(const u8 *slot) { run(predict_, slot); }

}  // namespace st
