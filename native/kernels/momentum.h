// u = momentum u + g, p -= learning_rate u (Polyak, 1964).
// Nothing where the batch had no weight; flags what is not finite.
#pragma once
#include "base/kernel.h"

ST_INLINE i32 momentum_update(f32 rate, f32 momentum, f32 g, f32 *p, f32 *u) {
    f32 speed = momentum * *u + g, next = *p - rate * speed;
    *u = speed;
    *p = next;
    return not_finite(next) | not_finite(speed);
}

ST_KERNEL void momentum(i64 n, StepBlock *step, const f32 *g, f32 *p, f32 *u, f32 factor) {
    if (!(step->weight_sum > 0)) return;
    f32 rate = step->learning_rate;
    i32 bad = 0;
    ST_FOR(i, n) bad |= momentum_update(rate, factor, g[i], p + i, u + i);
    if (bad) step->not_finite = 1;
}
ST_EXPORT(momentum)

// The same for the rows of a table that the batch touched: those that lead (see embedding.h).
ST_KERNEL void momentum_rows(i64 rows, i64 entries, i64 columns, i64 column, i64 buckets, i64 dim,
                             StepBlock *step, const i32 *ends_r, const i32 *categories_ec, const i32 *lead_e,
                             const f64 *g_ed, f32 *p_bd, f32 *u_bd, f32 factor) {
    if (!(step->weight_sum > 0)) return;
    f32 rate = step->learning_rate;
    ST_ROWS(e, entry_count(rows, ends_r)) {
        if (lead_e[e] != e) continue;
        i64 at = embedding_bucket(categories_ec, e, columns, column, buckets) * dim;
        i32 bad = 0;
        ST_LANES(d, dim) {
            f32 g = static_cast<f32>(g_ed[e * dim + d]);
            bad |= momentum_update(rate, factor, g, p_bd + at + d, u_bd + at + d);
        }
        if (bad) step->not_finite = 1;
    }
}
ST_EXPORT(momentum_rows)
