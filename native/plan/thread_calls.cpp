#include "plan/thread_calls.h"

#include <algorithm>

#include "base/fail.h"
#include "plan/subnormal.h"

namespace st {
namespace {

constexpr u64 OUTSIDE_CELLS = 3;   // which one, the rows present, the slot
constexpr u64 STRIP = 1024;        // elements that go through a chain at a time: what its calls work on stays in the L1

void call_outside(void **arguments) {
    const i64 rows = *static_cast<i64 *>(arguments[1]);
    if (rows > 0) (**static_cast<Outside **>(arguments[0]))(rows, *static_cast<u64 *>(arguments[2]));
}

u64 cell_bits(const PlanArgument &argument, const ThreadCalls::Memories &memories) {
    auto at = [&](const u8 *start, const char *what) {
        if (!start) mistake("plan", std::string("memory for ") + what, "none; give it to compile()");
        return reinterpret_cast<u64>(start) + argument.bits;
    };
    if (memories.own && argument.own >= 0) return reinterpret_cast<u64>(memories.own + argument.own);
    switch (argument.memory) {
        case Memory::work: return at(memories.work, "work");
        case Memory::state: return at(memories.bound.state, "state");
        case Memory::base: return at(memories.bound.base, "base");
        case Memory::share: return at(memories.bound.share, "share");
        case Memory::step: return reinterpret_cast<u64>(memories.step);
        case Memory::slot:
        case Memory::per_row:
        case Memory::before:
        case Memory::turn: return 0;   // set at every run
        case Memory::addresses:
        case Memory::value: break;
    }
    return argument.bits;
}

}  // namespace

ThreadCalls::ThreadCalls(const PlanStretch &described, const std::string &isa, const Memories &memories,
                         std::vector<Outside> &outside)
    : by_tiles_(described.by_tiles) {
    u64 count = 0, addresses = 0;
    for (const PlanCall &call : described.calls) {
        count += call.kernel.empty() ? OUTSIDE_CELLS : call.arguments.size();
        for (const PlanArgument &argument : call.arguments) addresses += argument.table.size();
    }
    cells_.reserve(count);   // so that they stay where they are
    addresses_.reserve(addresses);
    pointers_.reserve(count);
    u32 of_chain = 0;   // calls to come
    for (const PlanCall &call : described.calls) {
        if (call.chain > 0) {
            of_chain = call.chain;
            chains_.push_back({of_chain, {}, {}});
        }
        call.kernel.empty() ? compile_outside(outside.at(call.outside)) : compile_kernel(call, isa, memories);
        if (call.chain > 0) calls_.back().chain = static_cast<i64>(chains_.size()) - 1;
        if (of_chain > 0) add_to_chain(chains_.back(), call.arguments), --of_chain;
    }
}

void ThreadCalls::add_to_chain(Chain &chain, const std::vector<PlanArgument> &arguments) {
    u64 *cell = cells_.data() + calls_.back().first_pointer;
    for (const PlanArgument &argument : arguments) {
        if (argument.memory == Memory::per_row) chain.counts.push_back(cell);
        if (argument.element > 0) chain.moving.push_back({cell, argument.element});
        ++cell;
    }
}

void ThreadCalls::compile_kernel(const PlanCall &call, const std::string &isa, const Memories &memories) {
    const KernelEntry *kernel = find_kernel(call.kernel.c_str(), call.types.c_str(), isa.c_str());
    if (!kernel || kernel->argument_count != call.arguments.size())
        mistake("plan: kernel " + call.kernel + "<" + call.types + ">", "one built for " + isa + " with " +
                std::to_string(call.arguments.size()) + " arguments", "none");
    u32 first = static_cast<u32>(cells_.size());
    u64 told = turn_cells_.size();
    for (const PlanArgument &argument : call.arguments) compile_argument(argument, memories);
    calls_.push_back(
        {kernel->thunk, first, kernel->subnormals_are_zero, turn_cells_.size() > told ? i64{in_order_++} : -1});
}

void ThreadCalls::compile_argument(const PlanArgument &argument, const Memories &memories) {
    const bool is_table = argument.memory == Memory::addresses;
    const u32 cell = add_cell(is_table ? compile_addresses(argument, memories) : cell_bits(argument, memories));
    if (!is_table) moves(cells_[cell], argument);
    if (argument.memory == Memory::per_row) row_cells_.push_back({cell, argument.bits});
    if (argument.memory == Memory::before) before_cells_.push_back({cell, argument.bits});
    if (argument.memory == Memory::turn) turn_cells_.push_back(cell);
}

u64 ThreadCalls::compile_addresses(const PlanArgument &argument, const Memories &memories) {
    const u64 *first = addresses_.data() + addresses_.size();
    for (const PlanArgument &each : argument.table) {
        addresses_.push_back(cell_bits(each, memories));
        moves(addresses_.back(), each);
    }
    return reinterpret_cast<u64>(first);
}

// Where the argument is of a slot, or of a tile's rows, the cell is set at every run.
void ThreadCalls::moves(u64 &cell, const PlanArgument &argument) {
    const bool in_slot = argument.memory == Memory::slot;
    if (in_slot || (by_tiles_ && argument.row_bytes > 0))
        moving_cells_.push_back({&cell, in_slot, in_slot ? argument.bits : cell, argument.row_bytes});
}

void ThreadCalls::compile_outside(Outside &call) {
    calls_.push_back({call_outside, static_cast<u32>(cells_.size()), false, -1});
    add_cell(reinterpret_cast<u64>(&call));
    row_cells_.push_back({add_cell(0), 1});
    moving_cells_.push_back({&cells_[add_cell(0)], true, 0, 0});
}

u32 ThreadCalls::add_cell(u64 bits) {
    cells_.push_back(bits);
    pointers_.push_back(&cells_.back());
    return static_cast<u32>(cells_.size() - 1);
}

void ThreadCalls::set_cells(const u8 *slot, const Tile &tile) {
    for (const MovingCell &cell : moving_cells_) {
        u64 start = cell.in_slot ? reinterpret_cast<u64>(slot) + cell.start : cell.start;
        *cell.cell = start + static_cast<u64>(tile.first) * cell.row_bytes;
    }
    for (const RowCell &cell : row_cells_) cells_[cell.cell] = static_cast<u64>(tile.rows) * cell.times;
    for (const RowCell &cell : before_cells_) cells_[cell.cell] = static_cast<u64>(tile.first) * cell.times;
    for (u32 cell : turn_cells_) cells_[cell] = tile.turn;
}

void ThreadCalls::invoke(const Call &call) {
    void **arguments = pointers_.data() + call.first_pointer;
    if (!call.subnormals_are_zero) return call.thunk(arguments);
    const SubnormalsAreZero flush;
    call.thunk(arguments);   // by an address: no arithmetic of it moves out of here
}

void ThreadCalls::run_chain(u64 first, const Chain &chain) {
    const u64 elements = *chain.counts[0];
    auto move = [&](u64 by) {
        for (const StripCell &each : chain.moving) *each.cell += by * each.element;
    };
    for (u64 done = 0, count = 0; done < elements; done += count, move(count)) {
        count = std::min(STRIP, elements - done);
        for (u64 *cell : chain.counts) *cell = count;
        for (u64 at = first; at < first + chain.calls; ++at) invoke(calls_[at]);
    }
    move(u64{0} - elements);   // back: what does not go with the tile is not set again
}

template <class Make>
void ThreadCalls::run_all(Make make) {
    for (u64 at = 0; at < calls_.size(); ++at) {
        const Call &call = calls_[at];
        if (call.chain < 0) {
            make(call);
            continue;
        }
        const Chain &chain = chains_[static_cast<u64>(call.chain)];
        run_chain(at, chain);
        at += chain.calls - 1;
    }
}

void ThreadCalls::run(const u8 *slot, const Tile &tile) {
    set_cells(slot, tile);
    run_all([&](const Call &call) { invoke(call); });
}

void ThreadCalls::run(const u8 *slot, const Tile &tile, TileOrder &order) {
    set_cells(slot, tile);
    run_all([&](const Call &call) {
        auto invoked = [&] { invoke(call); };
        call.in_order < 0 ? invoked() : order.in_turn(static_cast<u32>(call.in_order), tile.number, invoked);
    });
}

}  // namespace st
