// p -= learning_rate g. Nothing where the batch had no weight; flags a parameter that is not finite.
#pragma once
#include "base/kernel.h"

ST_INLINE i32 sgd_update(f32 rate, f32 g, f32 *p) {
    f32 next = *p - rate * g;
    *p = next;
    return not_finite(next);
}

ST_KERNEL void sgd(i64 n, StepBlock *step, const f32 *g, f32 *p) {
    if (!(step->weight_sum > 0)) return;
    f32 rate = step->learning_rate;
    i32 bad = 0;
    ST_FOR(i, n) bad |= sgd_update(rate, g[i], p + i);
    if (bad) step->not_finite = 1;
}
ST_EXPORT(sgd)

// The same for the rows of a table that the batch touched: those that lead (see embedding.h).
ST_KERNEL void sgd_rows(i64 rows, i64 entries, i64 columns, i64 column, i64 buckets, i64 dim,
                        StepBlock *step, const i32 *ends_r, const i32 *categories_ec, const i32 *lead_e,
                        const f64 *g_ed, f32 *p_bd) {
    if (!(step->weight_sum > 0)) return;
    f32 rate = step->learning_rate;
    ST_ROWS(e, entry_count(rows, ends_r)) {
        if (lead_e[e] != e) continue;
        i64 at = embedding_bucket(categories_ec, e, columns, column, buckets) * dim;
        i32 bad = 0;
        ST_LANES(d, dim) bad |= sgd_update(rate, static_cast<f32>(g_ed[e * dim + d]), p_bd + at + d);
        if (bad) step->not_finite = 1;
    }
}
ST_EXPORT(sgd_rows)
