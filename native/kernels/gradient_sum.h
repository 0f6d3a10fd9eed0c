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

// The same of tables, from the entries that lead (kernels/embedding.h): a row of them for each.
ST_KERNEL void gradient_sum_rows(i64 rows, i64 entries, i64 columns, i64 tables, i64 total, const StepBlock *step,
                                 const i64 *tables_tk, const i32 *ends_r, const i32 *categories_ec,
                                 const i32 *lead_te, const f64 *g_eu, f64 *const *total_t) {
    (void)total;
    const f64 weight = step->weight_sum;
    if (!(weight > 0)) return;
    by_table(tables, tables_tk, entry_count(rows, ends_r), [&](const EntryTable &table, i64 dim, i64 e) ST_LAMBDA {
        if (lead_te[table.number * entries + e] != e) return;
        const i64 row = embedding_bucket(categories_ec, e, columns, table.column, table.buckets);
        const f64 *g = g_eu + table.before * entries + e * dim;
        f64 *to = total_t[table.number] + row * dim;
        ST_LANES(d, dim) to[d] += weight * g[d];
    });
}
ST_EXPORT(gradient_sum_rows)
