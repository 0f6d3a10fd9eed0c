// The table row of one entry of the batch. A bucket outside the table is row 0: nothing but the table is ever read.
#pragma once
#include "base/lane.h"

namespace st {
inline namespace ST_ISA {

ST_INLINE i64 embedding_bucket(const i32 *categories_rc, i64 r, i64 columns, i64 column, i64 buckets) {
    i64 bucket = categories_rc[r * columns + column];
    return bucket >= 0 && bucket < buckets ? bucket : 0;
}

// Where rows have any number of entries: the first one of row r, and how many there are in all. Without ends each row
// has one.
ST_INLINE i64 first_entry(const i32 *ends_r, i64 r) { return r ? ends_r[r - 1] : 0; }
ST_INLINE i64 entry_count(i64 rows, const i32 *ends_r) { return ends_r ? first_entry(ends_r, rows) : rows; }

// body(dim), of usual sizes a body of its own: its loops over a row's numbers are then written out.
template <class Body>
ST_INLINE void by_dim(i64 dim, Body body) {
#if !ST_CUDA
    if (dim == 1) return body(1);
    if (dim == 8) return body(8);
    if (dim == 16) return body(16);
#endif
    body(dim);
}

// One of the tables of a batch's entries, as place_of() tells it (compute/ops/entry_table.py): the column of its
// categories, its rows and their numbers, the first of its columns in the input matrix, and how many numbers of an
// entry's gradient belong to the tables before it.
constexpr i64 table_columns = 5;
struct EntryTable {
    i64 number, column, buckets, dim, at, before;

    ST_MEMBER EntryTable(const i64 *tables_tk, i64 table)
        : number(table), column(tables_tk[table * table_columns]), buckets(tables_tk[table * table_columns + 1]),
          dim(tables_tk[table * table_columns + 2]), at(tables_tk[table * table_columns + 3]),
          before(tables_tk[table * table_columns + 4]) {}
};

// The rows of a long table lie anywhere, so they are asked for before they are needed, and into the L2: fewer lines are
// on their way to the L1 at a time.
constexpr i64 rows_ahead = 64;
ST_INLINE void fetch_row(const f32 *row, i64 dim) {
#if ST_CUDA
    (void)row, (void)dim;
#else
    asm volatile("" : : "r"(row));   // GCC 12 leaves fetches out of a loop of which it makes vectors
    constexpr i64 line = 16;         // floats
    for (i64 d = 0; d < smaller(dim, 4 * line); d += line) __builtin_prefetch(row + d, 1, 2);
#endif
}

// In each of so many turns: fetch(those of the first turns), then fetch(a later one).
template <class Fetch>
ST_INLINE void fetch_ahead(i64 turn, i64 turns, Fetch fetch) {
#if ST_CUDA
    (void)turn, (void)turns, (void)fetch;
#else
    if (turn == 0)
        for (i64 first = 0; first < smaller(rows_ahead, turns); ++first) fetch(first);
    if (turn + rows_ahead < turns) fetch(turn + rows_ahead);
#endif
}

// body(table, dim, e) for each entry of each table, one table after the other; `dim` as by_dim() has it. Before,
// fetch(table, dim, e) of later ones: the first of the next table while this one is gone through.
template <class Fetch, class Body>
ST_INLINE void by_table(i64 tables, const i64 *tables_tk, i64 entries, Fetch fetch, Body body) {
#if ST_CUDA
    (void)fetch;
    ST_ROWS(i, tables * entries) {
        const EntryTable table(tables_tk, i / entries);
        body(table, table.dim, i % entries);
    }
#else
    auto fetch_first = [&](const EntryTable &table) {
        for (i64 e = 0; e < smaller(rows_ahead, entries); ++e) fetch(table, table.dim, e);
    };
    if (tables > 0) fetch_first(EntryTable(tables_tk, 0));
    for (i64 t = 0; t < tables; ++t) {
        const EntryTable table(tables_tk, t);
        if (t + 1 < tables) fetch_first(EntryTable(tables_tk, t + 1));
        by_dim(table.dim, [&](i64 dim) ST_LAMBDA {
            for (i64 e = 0; e < entries; ++e) {
                if (e + rows_ahead < entries) fetch(table, dim, e + rows_ahead);
                body(table, dim, e);
            }
        });
    }
#endif
}

// Of what lies as the entries do nothing has to be fetched.
template <class Body>
ST_INLINE void by_table(i64 tables, const i64 *tables_tk, i64 entries, Body body) {
    by_table(tables, tables_tk, entries, [](const EntryTable &, i64, i64) ST_LAMBDA {}, body);
}

}  // namespace ST_ISA
}  // namespace st
