// A sum over the rows of a batch from those over its tiles, in ascending order: added in double, rounded once behind
// the last. part_n: that of a tile. sum_n: behind the last tile, the sum; it may be part_n, and of a batch that is one
// tile has to be. turn: 0 the batch is one tile, else 1 its first tile, 2 one between, 3 its last.
#pragma once
#include "base/kernel.h"

ST_KERNEL void chain_sum(i64 n, i64 turn, const f32 *part_n, f64 *total_n, f32 *sum_n) {
    if (turn == 0) return;
    ST_FOR(i, n) {
        f64 total = turn == 1 ? f64(part_n[i]) : total_n[i] + f64(part_n[i]);
        if (turn == 3)
            sum_n[i] = static_cast<f32>(total);
        else
            total_n[i] = total;
    }
}
ST_EXPORT(chain_sum)
