// The gradients of several batches added up, each times the weight of its rows, for who wants that of all of them:
// total_n += weight x g_n, in double and in the order of the batches.
#pragma once
#include "base/kernel.h"

ST_KERNEL void gradient_sum(i64 n, const StepBlock *step, const f32 *g_n, f64 *total_n) {
    const f64 weight = step->weight_sum;
    if (!(weight > 0)) return;
    ST_FOR(i, n) total_n[i] += weight * f64(g_n[i]);
}
ST_EXPORT(gradient_sum)

// The same of a table, from the entries that lead (kernels/embedding.h): a row of it for each.
ST_KERNEL void gradient_sum_rows(i64 rows, i64 entries, i64 columns, i64 column, i64 buckets, i64 dim,
                                 const StepBlock *step, const i32 *ends_r, const i32 *categories_ec, const i32 *lead_e,
                                 const f64 *g_ed, f64 *total_bd) {
    (void)entries;
    const f64 weight = step->weight_sum;
    if (!(weight > 0)) return;
    ST_ROWS(e, entry_count(rows, ends_r)) {
        if (lead_e[e] != e) continue;
        f64 *to = total_bd + embedding_bucket(categories_ec, e, columns, column, buckets) * dim;
        ST_LANES(d, dim) to[d] += weight * g_ed[e * dim + d];
    }
}
ST_EXPORT(gradient_sum_rows)
