// How many rows there were of each bucket of a category: count_c, one cell a bucket, and behind them that of all rows.
#pragma once
#include "base/kernel.h"

// The rows of weight above 0 of a batch, added.
ST_KERNEL void count_add(i64 rows, i64 columns, i64 column, i64 cells, const i32 *categories_rc, const f32 *weight_r,
                         i64 *count_c) {
#if ST_CUDA   // whole numbers: their order does not matter
    ST_FOR(r, rows) {
        if (!(weight_r[r] > 0)) continue;
        i64 bucket = embedding_bucket(categories_rc, r, columns, column, cells - 1);
        atomicAdd(reinterpret_cast<unsigned long long *>(count_c + bucket), 1ull);
        atomicAdd(reinterpret_cast<unsigned long long *>(count_c + cells - 1), 1ull);
    }
#else
    i64 all = 0;
    for (i64 r = 0; r < rows; ++r) {
        if (!(weight_r[r] > 0)) continue;
        ++count_c[embedding_bucket(categories_rc, r, columns, column, cells - 1)];
        ++all;
    }
    count_c[cells - 1] += all;
#endif
}
ST_EXPORT(count_add)

// x_rw[r, at] of the count n of row r: 0 log(1 + n), 1 its share of all rows, 2 n.
ST_KERNEL void count_value(i64 rows, i64 columns, i64 column, i64 cells, i64 width, i64 at, i64 form,
                           const i32 *categories_rc, const i64 *count_c, f32 *x_rw) {
    const f64 all = larger(f64(count_c[cells - 1]), 1.0);
    const auto value_of = [=](f64 n) ST_LAMBDA { return form == 0 ? log(1 + n) : form == 1 ? n / all : n; };
#if ST_CUDA
    ST_FOR(r, rows) {
        const i64 bucket = embedding_bucket(categories_rc, r, columns, column, cells - 1);
        x_rw[r * width + at] = static_cast<f32>(value_of(f64(count_c[bucket])));
    }
#else   // counts are fetched first: what is made of them is vector code then
    constexpr i64 PIECE = 64;
    f64 n_i[PIECE];
    for (i64 r = 0; r < rows; r += PIECE) {
        const i64 count = rows - r < PIECE ? rows - r : PIECE;
        for (i64 i = 0; i < count; ++i)
            n_i[i] = f64(count_c[embedding_bucket(categories_rc, r + i, columns, column, cells - 1)]);
        for (i64 i = 0; i < count; ++i) n_i[i] = value_of(n_i[i]);
        for (i64 i = 0; i < count; ++i) x_rw[(r + i) * width + at] = static_cast<f32>(n_i[i]);
    }
#endif
}
ST_EXPORT(count_value)

// index_r[r]: the bucket of row r where it was seen in `least` rows, else the cell behind the buckets.
ST_KERNEL void count_index(i64 rows, i64 columns, i64 column, i64 cells, i64 least, const i32 *categories_rc,
                           const i64 *count_c, i32 *index_r) {
    ST_FOR(r, rows) {
        const i64 bucket = embedding_bucket(categories_rc, r, columns, column, cells - 1);
        index_r[r] = static_cast<i32>(count_c[bucket] >= least ? bucket : cells - 1);
    }
}
ST_EXPORT(count_index)
