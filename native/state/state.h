// A model's state: typed blocks in one flat vector, and where they lie in it and in a mean buffer. Nobody else counts
// bytes: Python asks.
//
// start   the mean buffer a round begins from; read-only until the round after it is averaged
// base    a worker's copy of the start's statistics part, which its steps read: what was known when the round began
// share   what a worker's steps gather for the statistics part in a round, from zero, never on top of the base
// mean    what a round makes of the start and the workers' vectors (learned part trained, share): the next one's start
#pragma once
#include <string>
#include <vector>

#include "base/types.h"

namespace st {

struct Rule;

// The learned part is trained in place; of the statistics part a worker has a base and a share.
enum class Part : u32 { learned = 0, statistics = 1 };

struct StateBlockSpec {
    std::string name;            // "dense0.weight", "adam.m.dense0.weight", "standardize.numbers", "score.loss"
    std::string group;           // parameters | optimizer | statistics | score | window
    std::string rule;            // one of state/rules/
    std::vector<u64> shape;      // rows first
    std::string rows_of = {};    // the block that says whose its rows are (Rule::vacated); "": always the same's
    std::string dtype = {};      // how its elements are stored, of those its rule takes; "": the first of them
};

// Counts the steps that changed parameters since the lineage began.
constexpr const char *OPTIMIZER_STEPS = "optimizer.steps";
// What the outer step keeps of a parameter, by its name; and its rate and momentum.
constexpr const char *OUTER_VELOCITY = "outer.velocity.";
constexpr const char *OUTER_SETTINGS = "outer.settings";
// Where a schedule stands that goes by more than the steps; its first number is what is left of the learning rate.
constexpr const char *SCHEDULE_STANDING = "schedule.standing";
// Sums over all rows scored: their loss and weight; what is minimised, where that is another; how many they were.
constexpr const char *SCORE_LOSS = "score.loss";
constexpr const char *SCORE_OBJECTIVE = "score.objective";
constexpr const char *SCORE_ROWS = "score.rows";
// A score block at the beginning of the open window has this in the place of its prefix; how many windows have closed.
constexpr const char *SCORE = "score.", *WINDOW = "window.";
constexpr const char *WINDOWS_CLOSED = "window.closed";
// The rest of a name: the tally of the open window, a score; the figures of the newest closed one, of the window.
constexpr const char *DISTINCT = "distinct", *CURVES = "curves";

struct StateBlock {
    std::string name, group;
    const Rule *rule;
    Dtype dtype;
    std::vector<u64> shape;
    u64 offset = 0;              // bytes from the state's start, on a cache line
    u64 part_offset = 0;         // the same from the start of its part: in a base or a share
    u64 mean_offset = 0;         // in a mean buffer, of the first worker where it is kept once for each worker ...
    u64 worker_stride = 0;       // ... and how far the next worker's lies behind it; else 0
    std::string rows_of = {};

    u64 rows() const { return shape.empty() ? 1 : shape.front(); }
    u64 row_elements() const {
        u64 elements = 1;
        for (u64 axis = 1; axis < shape.size(); ++axis) elements *= shape[axis];
        return elements;
    }
    u64 count() const { return rows() * row_elements(); }
    u64 bytes() const { return count() * bytes_of(dtype); }
    u64 in_mean(u32 worker) const { return mean_offset + worker * worker_stride; }
};

// What of a mean buffer is published: tensors with their offsets in it, in the order in which they lie. A block that is
// kept once for each worker is published as <block>@<worker>, with an axis of 1 before its own.
struct PublishedLayout {
    std::vector<StateBlock> blocks;
    u64 state_bytes = 0;         // of the mean buffer
};

struct StateLayout {
    std::vector<StateBlock> blocks;
    u64 learned_bytes = 0;       // the statistics part starts here
    u64 state_bytes = 0;
    u64 local_bytes = 0;         // of one worker: what is kept once for each
    u64 windows_offset = 0;      // where the blocks of the rule `window` begin, which are the last ones

    // The learned part, then the statistics part, each in the order given. Mistake where a rule is unknown, or does
    // not take the dtype, or a name is given twice.
    static StateLayout make(const std::vector<StateBlockSpec> &specs);

    const StateBlock *find(const std::string &name) const;
    u64 statistics_bytes() const { return state_bytes - learned_bytes; }
    // A mean buffer: a whole state, then what is kept for each worker, one worker after the other.
    u64 mean_bytes(u32 workers) const { return state_bytes + workers * local_bytes; }
    PublishedLayout published(u32 workers) const;
    // The mean buffer a lineage starts from: every published block has what its block has in `state`.
    void begin_lineage(const u8 *state, u32 workers, u8 *mean) const;
};

}  // namespace st
