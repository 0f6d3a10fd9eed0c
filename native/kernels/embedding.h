// Tables of vectors by category, any number of them at once (EntryTable, base/bucket.h). The forward pass: rows of each
// as columns of the input matrix, x_rw[r, at + d] = table_t[t][bucket of r, d].
#pragma once
#include "base/kernel.h"

ST_KERNEL void embedding_forward(i64 rows, i64 columns, i64 tables, i64 width, const i64 *tables_tk,
                                 const i32 *categories_rc, const f32 *const *table_t, f32 *x_rw) {
    auto row = [&](const EntryTable &table, i64 dim, i64 r) ST_LAMBDA {
        return table_t[table.number] + embedding_bucket(categories_rc, r, columns, table.column, table.buckets) * dim;
    };
    auto fetch = [&](const EntryTable &table, i64 dim, i64 r) ST_LAMBDA { fetch_row(row(table, dim, r), dim); };
    by_table(tables, tables_tk, rows, fetch, [&](const EntryTable &table, i64 dim, i64 r) ST_LAMBDA {
        const f32 *from = row(table, dim, r);
        f32 *to = x_rw + r * width + table.at;
        ST_LANES(d, dim) to[d] = from[d];
    });
}
ST_EXPORT(embedding_forward)

// lead_tr[t, r]: the first row of the batch with row r's bucket in that table, -1 for weight 0. seen_s: memory for
// FirstSeen.
ST_KERNEL void embedding_lead(i64 rows, i64 columns, i64 tables, i64 slots, const i64 *tables_tk,
                              const i32 *categories_rc, const f32 *weight_r, i64 *seen_s, i32 *lead_tr) {
    (void)slots;
#if ST_CUDA   // rows look for themselves; the host's table makes it linear
    (void)seen_s;
    ST_FOR(i, tables * rows) {
        const EntryTable table(tables_tk, i / rows);
        auto bucket = [&](i64 row) {
            return embedding_bucket(categories_rc, row, columns, table.column, table.buckets);
        };
        i64 q = 0, r = i % rows;
        while (q < r && !(weight_r[q] > 0 && bucket(q) == bucket(r))) ++q;
        lead_tr[i] = weight_r[r] > 0 ? static_cast<i32>(q) : -1;
    }
#else
    for (i64 t = 0; t < tables; ++t) {
        const EntryTable table(tables_tk, t);
        auto bucket = [&](i64 r) {
            return embedding_bucket(categories_rc, r, columns, table.column, table.buckets);
        };
        look_at_rows(rows, nullptr, weight_r, bucket, seen_s, lead_tr + t * rows);
    }
#endif
}
ST_EXPORT(embedding_lead)

// Of each table gradient_rd[r, d] of a leading row: the sum of dx over the rows it leads, in row order and in double;
// other rows are left as they are. The first column of dx is that of the input matrix.
ST_KERNEL void embedding_gradient(i64 rows, i64 tables, i64 total, i64 width, i64 first, const i64 *tables_tk,
                                  const f32 *dx_rw, const i32 *lead_tr, f64 *gradient_ru) {
    (void)total;
    by_table(tables, tables_tk, rows, [&](const EntryTable &table, i64 dim, i64 r) ST_LAMBDA {
        const i32 *lead_r = lead_tr + table.number * rows;
        f64 *gradient_rd = gradient_ru + table.before * rows;
        const f32 *from = dx_rw + table.at - first;
#if ST_CUDA
        if (lead_r[r] != r) return;
        ST_LANES(d, dim) {
            f64 sum = from[r * width + d];
            for (i64 q = r + 1; q < rows; ++q)
                if (lead_r[q] == r) sum += from[q * width + d];
            gradient_rd[r * dim + d] = sum;
        }
#else
        if (lead_r[r] < 0) return;
        f64 *to = gradient_rd + lead_r[r] * dim;
        if (lead_r[r] == r)
            ST_FOR(d, dim) to[d] = from[r * width + d];
        else
            ST_FOR(d, dim) to[d] += from[r * width + d];
#endif
    });
}
ST_EXPORT(embedding_gradient)
