// The mean of the workers' vectors, block by block by its rule; the order is the workers', so the
// bits are the same whoever computes it.
#pragma once
#include <vector>

#include "state/state.h"

namespace st {

struct Contribution {
    const u8 *vector;      // a state: learned part trained, statistics part the share of this round
    f64 weight_sum;        // 0: trained nothing this round
};

// mean := learned blocks: sum of (w_i / sum w) x_i in float64, rounded once (the start's where sum w is 0);
// statistics part: base merged with every share. local blocks are left alone. `first_round`, where given, is a
// statistics part whose moments hold the round already (a lineage's first round, whose own pass made them the base).
void average(const StateLayout &layout, const u8 *start, const std::vector<Contribution> &workers,
             const u8 *first_round, u8 *mean);

// base^exponent by squaring: multiplications only, so that every machine gives the same bits.
f64 power(f64 base, i64 exponent);

}  // namespace st
