#include "plan/cpu_plan.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

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

}  // namespace

void CpuPlan::Free::operator()(u8 *bytes) const { std::free(bytes); }

CpuPlan::Bytes CpuPlan::zeroed(u64 bytes) {
    Bytes made(static_cast<u8 *>(std::aligned_alloc(64, bytes)));
    if (!made) throw std::bad_alloc();
    std::memset(made.get(), 0, bytes);   // also touches every page: no fault in the first step
    return made;
}

CpuPlan::CpuPlan(const PlanDescription &description, PlanMemory memory)
    : output_offset_(WORK_START + description.output_offset), rows_(description.rows), width_(description.width),
      tile_rows_(description.tile_rows) {
    check_aligned(memory.state, "state");
    check_aligned(memory.base, "base");
    check_aligned(memory.share, "share");
    if (description.threads < 1 || description.threads > MAX_PLAN_THREADS)
        mistake("plan: threads", "1 to " + std::to_string(MAX_PLAN_THREADS), std::to_string(description.threads));
    workspace_ = zeroed(WORK_START + align64(description.workspace_bytes));
    for (const auto &[offset, content] : description.constants)
        std::memcpy(work() + offset, content.data(), content.size());
    step_ = reinterpret_cast<StepBlock *>(workspace_.get());
    outside_.resize(description.outside);
    own_.resize(1);
    while (own_.size() < description.threads) own_.push_back(zeroed(align64(std::max<u64>(description.own_bytes, 64))));
    for (u32 phase = 0; phase < phase_count; ++phase)
        phases_[phase] = compile(description.phases[phase], description, memory);
    u32 in_order = 0;
    bool dealt = false;
    for (const Stretches &stretches : phases_)
        for (const Stretch &stretch : stretches) {
            in_order = std::max(in_order, stretch.of_thread[0].in_order());
            dealt |= stretch.of_thread.size() > 1;
        }
    if (!dealt) return;
    order_ = std::make_unique<TileOrder>(in_order);
    threads_ = std::make_unique<TileThreads>(description.threads);
}

CpuPlan::Stretches CpuPlan::compile(const std::vector<PlanStretch> &described, const PlanDescription &description,
                                    PlanMemory memory) {
    const std::string &isa = description.isa.empty() ? selected_isa() : description.isa;
    Stretches compiled;
    for (const PlanStretch &each : described) {
        if (each.by_tiles && tile_rows_ == 0) mistake("plan: rows of a tile", "1 or more", "0");
        Stretch &stretch = compiled.emplace_back();
        for (u32 thread = 0; thread < (each.by_tiles ? description.threads : 1); ++thread)
            stretch.of_thread.emplace_back(
                each, isa, ThreadCalls::Memories{work(), memory, step_, own_[thread].get()}, outside_);
    }
    return compiled;
}

u8 *CpuPlan::work() const { return workspace_.get() + WORK_START; }

void CpuPlan::run(Phase phase, const u8 *slot) {
    Stretches &stretches = phases_[static_cast<u32>(phase)];
    if (stretches.empty()) no_phase(phase);
    const i64 rows = reinterpret_cast<const SlotHeader *>(slot)->rows;
    begin_step(*step_, phase, rows);
    for (Stretch &stretch : stretches) {
        ThreadCalls &first = stretch.of_thread[0];
        if (first.by_tiles() && rows > tile_rows_)
            run_tiles(stretch, slot, rows);
        else
            first.run(slot, {0, rows, 0, 0});
    }
}

void CpuPlan::run_tiles(Stretch &stretch, const u8 *slot, i64 rows) {
    const u32 tiles = static_cast<u32>((rows + tile_rows_ - 1) / tile_rows_);
    auto tile = [&](u32 number) {
        i64 first = i64{number} * tile_rows_;
        const u64 turn = number == 0 ? 1 : number + 1 == tiles ? 3 : 2;
        return Tile{first, std::min<i64>(tile_rows_, rows - first), turn, number};
    };
    if (!threads_) {
        for (u32 number = 0; number < tiles; ++number) stretch.of_thread[0].run(slot, tile(number));
        return;
    }
    order_->begin();
    threads_->deal(tiles, [&](u32 thread, u32 number) { stretch.of_thread[thread].run(slot, tile(number), *order_); });
}

}  // namespace st
