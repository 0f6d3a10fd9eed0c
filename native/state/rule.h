// What becomes of a block over a round, by its rule: one file of state/rules/ each, named by its stem, with the same
// five parts. A rule sees its block, the round's start, what the workers have, and where the mean goes; nothing of how
// the processes agree on that.
//
// A mean is made in two steps: the contributions are joined to one, and the start is folded with that one. Joined
// contributions can be joined again, so a mean may be made in one place from what several places have joined. The bits
// depend on which contributions were joined first, and on their order, and on nothing else.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <span>
#include <vector>

#include "state/state.h"

namespace st {

// What a round begins from.
struct RoundStart {
    const u8 *mean;                       // a mean buffer
    // Of a lineage's first round, once its own pass has been over its slots: a statistics part whose moments hold the
    // round already; they take the place of the mean's.
    const u8 *first_moments = nullptr;
};

// The memories one worker's plan is bound to.
struct WorkerMemory {
    u32 worker;
    u8 *state, *base, *share;
    bool has_start = false;   // what is trained in place is as the start has it already
};

// What a worker, or several workers joined, made of a round.
struct Contribution {
    const u8 *vector;      // a state: learned part trained, statistics part the share
    f64 weight_sum;        // 0: trained nothing this round
};

struct Contributions {
    std::vector<Contribution> each;   // in worker order, so that the bits are the same whoever joins them
    f64 weight_sum = 0;               // of all
};

// How elements may be stored; the first where a block's spec says nothing.
struct Dtypes {
    Dtype of[4] = {};
    u32 count = 0;

    constexpr Dtypes(Dtype one) : of{one}, count(1) {}
    constexpr Dtypes(std::initializer_list<Dtype> several) : count(static_cast<u32>(several.size())) {
        std::ranges::copy(several, of);
    }
    constexpr const Dtype *begin() const { return of; }
    constexpr const Dtype *end() const { return of + count; }
};

struct Rule {
    Dtypes dtypes;         // of an element
    Part part;
    bool per_worker;       // kept once for each worker, in mean buffers and snapshots
    // begin: the worker's memories, from the start. Also where a round is begun again.
    void (*begin)(const StateBlock &, const RoundStart &, const WorkerMemory &);
    // share: the last word on the worker's share, before it is published; `steps` of the round changed parameters.
    void (*share)(const StateBlock &, const RoundStart &, const WorkerMemory &, i64 steps);
    // join: the contributions as one, in the block's place in `joined`. One contribution stays as it is. A block that
    // no worker contributes to is left alone.
    void (*join)(const StateBlock &, const RoundStart &, const Contributions &, u8 *joined);
    // fold: the block in `mean`, from the start and the joined contribution, which lies in `mean` before.
    void (*fold)(const StateBlock &, const RoundStart &, u8 *mean);
    // write: what of a mean buffer is published of the block, appended.
    void (*write)(const StateBlock &, u32 workers, std::vector<StateBlock> &published);
    // Which rows of the blocks whose rows_of it is have lost what they were for, appended: zeroed in the mean.
    void (*vacated)(const StateBlock &, const RoundStart &, const u8 *mean, std::vector<u64> &rows) = nullptr;
    // The last word on the mean, once all blocks are folded.
    void (*settle)(const StateLayout &, const StateBlock &, const RoundStart &, f64 weight_sum, u8 *mean) = nullptr;
    const char *name = nullptr;
};

std::span<const Rule> state_rules();
const Rule &rule_named(const std::string &name);   // Mistake where there is none

// All blocks by their rules.
void begin_round(const StateLayout &layout, const RoundStart &start, const WorkerMemory &own);
void share_round(const StateLayout &layout, const RoundStart &start, const WorkerMemory &own, i64 steps);
// Mistake where something of the state is kept for each worker: it has no place in a contribution.
void check_joins(const StateLayout &layout);
// Joins into `joined`, a mean buffer for as many workers as there are contributions. Gives their weight sum.
f64 join_round(const StateLayout &layout, const RoundStart &start, std::vector<Contribution> each, u8 *joined);
void fold_round(const StateLayout &layout, const RoundStart &start, std::vector<Contribution> each, u8 *mean);

}  // namespace st
