// What a plan is made of: calls of kernels by phase, and where the memory of their arguments lies.
#pragma once
#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "plan/plan.h"

namespace st {

// What a kernel's argument is: its own bits, the address of a byte offset in one of the plan's memories, a size that
// goes with the rows at hand, or those before them, or which tile of the batch they are (see kernels/chain_sum.h), or
// the address of a table of addresses.
enum class Memory : u32 {
    value = 0, work = 1, state = 2, base = 3, share = 4, slot = 5, step = 6, per_row = 7, before = 8, turn = 9,
    addresses = 10
};
constexpr const char *memory_names[] = {
    "value", "work", "state", "base", "share", "slot", "step", "per_row", "before", "turn",
    "addresses"};

struct PlanArgument {
    Memory memory;
    u64 bits;        // value: its own; per_row, before: the size for each row; turn, addresses: 0; else the offset in
                     // bytes
    u64 row_bytes;   // work, slot: what lies elsewhere for each tile, so much further for each row before it; else 0
    i64 own = -1;    // from 0 on: what holds one tile's; of a thread beside the first, at this offset of its own memory
    u64 element = 0;                     // of a chain: how much further a strip begins for each element before it
    std::vector<PlanArgument> table{};   // of addresses: what each is of
};

// A kernel, or with none the `outside`-th call out of the plan. Of a stretch by tiles, one that is told its turn is
// made in the order of the tiles. The first of a chain says how many calls it has: elementwise ones on as many
// elements, which are all made for a strip of them, then for the next.
struct PlanCall {
    std::string kernel, types;
    std::vector<PlanArgument> arguments;
    u32 outside = 0, chain = 0;
};

// A call out of a plan, to what is no kernel, on the rows present in the slot at this address.
using Outside = std::function<void(i64 rows, u64 slot)>;

// Calls one after the other: for the whole batch, or all of them for its first tile, then for the next.
struct PlanStretch {
    bool by_tiles;
    std::vector<PlanCall> calls;
};

struct PlanDescription {
    std::array<std::vector<PlanStretch>, phase_count> phases;   // empty: not asked for
    u64 workspace_bytes = 0;
    std::vector<std::pair<u64, std::string>> constants;   // workspace offset, content
    u64 output_offset = 0;                                // in the workspace
    u32 rows = 0, width = 0;
    std::string isa;                                      // empty: the selected one
    u32 outside = 0;                                      // calls out of the plan
    u32 tile_rows = 0;                                    // above 0 where a stretch is by tiles
    u32 threads = 1;                                      // among which the tiles are dealt
    u64 own_bytes = 0;                                    // of each thread beside the first
};

// Addresses the plan is bound to for its life; all 64-byte aligned.
// base and share may be null for a plan that only predicts.
struct PlanMemory {
    u8 *state = nullptr;
    const u8 *base = nullptr;
    u8 *share = nullptr;
};

}  // namespace st
