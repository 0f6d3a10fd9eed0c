// A stretch of a plan as one thread makes its calls: kernels, and their arguments, which lie in cells of its own.
#pragma once
#include <string>
#include <vector>

#include "base/thunk.h"
#include "plan/description.h"
#include "plan/tile_order.h"

namespace st {

// Rows of a batch: all of them, or a tile.
struct Tile {
    i64 first, rows;
    u64 turn;     // see kernels/chain_sum.h
    u32 number;
};

class ThreadCalls {
  public:
    // Where a plan's memory is. `own`: of a thread beside the first, what it has alone; else null.
    struct Memories {
        u8 *work;
        PlanMemory bound;
        StepBlock *step;
        u8 *own;
    };

    // Throws Mistake. The calls out of the plan stay where they are.
    ThreadCalls(const PlanStretch &described, const std::string &isa, const Memories &memories,
                std::vector<Outside> &outside);
    ThreadCalls(const ThreadCalls &) = delete;
    ThreadCalls(ThreadCalls &&) = default;

    bool by_tiles() const { return by_tiles_; }
    u32 in_order() const { return in_order_; }   // calls that are made in the order of the tiles
    void run(const u8 *slot, const Tile &tile);
    void run(const u8 *slot, const Tile &tile, TileOrder &order);

  private:
    struct Call {
        Thunk thunk;
        u32 first_pointer;
        bool subnormals_are_zero;
        i64 in_order;      // which of those that are; -1: none
        i64 chain = -1;    // that begins with it; -1: none
    };
    struct StripCell {     // cells that go with the strip of a chain: by so much for each element
        u64 *cell;
        u64 element;
    };
    struct Chain {
        u32 calls;
        std::vector<u64 *> counts;
        std::vector<StripCell> moving;
    };
    struct MovingCell {    // cells that are set to an address, or slot + offset, and what lies before the tile
        u64 *cell;
        bool in_slot;
        u64 start, row_bytes;
    };
    struct RowCell {       // cells that are set to rows x times: of those at hand, or those before them
        u32 cell;
        u64 times;
    };

    void compile_kernel(const PlanCall &call, const std::string &isa, const Memories &memories);
    void compile_argument(const PlanArgument &argument, const Memories &memories);
    u64 compile_addresses(const PlanArgument &argument, const Memories &memories);
    void moves(u64 &cell, const PlanArgument &argument);
    void compile_outside(Outside &call);
    void add_to_chain(Chain &chain, const std::vector<PlanArgument> &arguments);
    u32 add_cell(u64 bits);
    void set_cells(const u8 *slot, const Tile &tile);
    void invoke(const Call &call);
    void run_chain(u64 first, const Chain &chain);
    template <class Make>
    void run_all(Make make);

    bool by_tiles_;
    u32 in_order_ = 0;
    std::vector<u64> cells_;           // arguments of all calls
    std::vector<u64> addresses_;       // what those are of that are tables of addresses
    std::vector<void *> pointers_;     // pointers_[i] = &cells_[i]
    std::vector<Call> calls_;
    std::vector<Chain> chains_;
    std::vector<MovingCell> moving_cells_;
    std::vector<RowCell> row_cells_, before_cells_;
    std::vector<u32> turn_cells_;
};

}  // namespace st
