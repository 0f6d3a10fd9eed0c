// A model's state as one flat vector of typed blocks: what averaging, snapshots and round starts work on.
#pragma once
#include <string>
#include <vector>

#include "base/types.h"

namespace st {

enum class Rule : u32 {
    learned = 0,   // float32: mean over workers weighted by their weight sums
    local = 1,     // float32: kept per worker (optimizer state that is not averaged); never mixed
    moments = 2,   // float64 [n, 10] as base/moments.h has them: base merged with the shares, outliers held back
    sum = 3,       // float64: base + each worker's share, in worker order
    count = 4,     // int64: base + each worker's share
    highest = 5,   // int64: max over base and workers (optimizer steps)
};

// learned and local blocks come first (the "learned part", trained in place), then the statistics part, of which a
// worker sees the round's base read-only and gathers its share from zero. Blocks are 64-byte aligned.
struct StateBlock {
    std::string name;      // "dense0.weight", "adam.m.dense0.weight", "standardize.numbers", "score.log_loss"
    std::string group;     // parameters | optimizer | statistics | score
    Rule rule;
    u64 offset;            // bytes from the state's start
    u64 count;             // elements: float32, float64 or int64 by rule
};

struct StateLayout {
    std::vector<StateBlock> blocks;
    u64 learned_bytes = 0;   // the statistics part starts here
    u64 state_bytes = 0;
};

}  // namespace st
