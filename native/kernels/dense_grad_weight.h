// dw_io = x_ri^T dy_ro, db_o = the sum of dy_ro's rows: over CHAIN_ROWS one chain in ascending r (of fused
// multiply-adds; for db of additions), the chains' sums added in double in that order and rounded once. A stack has
// more of them in a tile. By base/product.h; few outputs are computed as dy^T x, so that inputs fill the lanes.
#pragma once
#include "base/kernel.h"

#if !ST_CUDA   // there it is cuBLAS

constexpr i64 few_outputs = vector_lanes / 2;
constexpr i64 piece_columns = 8 * vector_lanes;
static_assert(block_columns <= 512);   // what `totals` has for each input

// One output: a weighted sum of the rows of x (here of `vectors` vectors of each row), behind it that of the weights.
template <int vectors>
void sum_weighted_rows(i64 rows, i64 x_row, const f32 *x, int last, const f32 *dy_r, f32 *sums) {
    Vector sum[vectors];
    f32 total = 0;
    ST_UNROLL for (int v = 0; v < vectors; ++v) sum[v] = Vector{};
    for (i64 r = 0; r < rows; ++r, x += x_row) {
        Vector dy = broadcast(dy_r[r]);
        ST_UNROLL for (int v = 0; v < vectors; ++v)
            sum[v] = fma(load_lanes(x + v * vector_lanes, v == vectors - 1 ? last : vector_lanes), dy, sum[v]);
        total += dy_r[r];
    }
    ST_UNROLL for (int v = 0; v < vectors; ++v)
        store_lanes(sums + v * vector_lanes, sum[v], v == vectors - 1 ? last : vector_lanes);
    sums[(vectors - 1) * vector_lanes + last] = total;
}

template <int vectors>
void sum_rows(i64 rows, i64 dy_row, const f32 *dy, int last, f32 *sums) {
    Vector sum[vectors];
    ST_UNROLL for (int v = 0; v < vectors; ++v) sum[v] = Vector{};
    for (i64 r = 0; r < rows; ++r, dy += dy_row)
        ST_UNROLL for (int v = 0; v < vectors; ++v)
            sum[v] += load_lanes(dy + v * vector_lanes, v == vectors - 1 ? last : vector_lanes);
    ST_UNROLL for (int v = 0; v < vectors; ++v)
        store_lanes(sums + v * vector_lanes, sum[v], v == vectors - 1 ? last : vector_lanes);
}

// chain(first row, rows, sums) puts `count` sums of one chain there; here they are those of all rows.
template <class Chain>
ST_INLINE void add_chains(i64 rows, i64 count, f32 *sums, Chain chain) {
    chain(0, smaller(rows, CHAIN_ROWS), sums);
    if (rows <= CHAIN_ROWS) return;
    f64 totals[piece_columns + 1];
    ST_FOR(c, count) totals[c] = sums[c];
    for (i64 r = CHAIN_ROWS; r < rows; r += CHAIN_ROWS) {
        chain(r, smaller(rows - r, CHAIN_ROWS), sums);
        ST_FOR(c, count) totals[c] += sums[c];
    }
    ST_FOR(c, count) sums[c] = static_cast<f32>(totals[c]);
}

// Calls work(vectors as a constant, first column, columns in the last vector) for each piece of at most 8 vectors.
template <class Work, int... count>
ST_INLINE void by_pieces(i64 columns, std::integer_sequence<int, count...>, Work work) {
    for (i64 column = 0; column < columns; column += piece_columns) {
        i64 left = smaller<i64>(columns - column, piece_columns);
        i64 vectors = (left + vector_lanes - 1) / vector_lanes;
        int last = static_cast<int>(left - (vectors - 1) * vector_lanes);
        ((vectors == count + 1 ? work(std::integral_constant<int, count + 1>{}, column, last) : void()), ...);
    }
}

static void dense_grad_weight_one(i64 rows, i64 inputs, const f32 *x_ri, const f32 *dy_r, f32 *dw_i, f32 *db) {
    f32 sums[piece_columns + 1];
    by_pieces(inputs, std::make_integer_sequence<int, 8>{}, [&](auto vectors, i64 i, int last) {
        i64 columns = (vectors() - 1) * vector_lanes + last;
        add_chains(rows, columns + 1, sums, [&](i64 r, i64 count, f32 *to) {
            sum_weighted_rows<vectors()>(count, inputs, x_ri + r * inputs + i, last, dy_r + r, to);
        });
        ST_FOR(c, columns) dw_i[i + c] = sums[c];
        db[0] = sums[columns];
    });
}

static void dense_grad_bias(i64 rows, i64 outputs, const f32 *dy_ro, f32 *db_o) {
    by_pieces(outputs, std::make_integer_sequence<int, 8>{}, [&](auto vectors, i64 o, int last) {
        add_chains(rows, (vectors() - 1) * vector_lanes + last, db_o + o, [&](i64 r, i64 count, f32 *to) {
            sum_rows<vectors()>(count, outputs, dy_ro + r * outputs + o, last, to);
        });
    });
}

static void dense_grad_weight_few(i64 rows, i64 inputs, i64 outputs, const f32 *x_ri, const f32 *dy_ro, f32 *dw_io) {
    constexpr i64 piece = 4 * panel_columns;
    f32 dw_oi[few_outputs * piece];
    f64 totals[few_outputs * piece];
    for (i64 first = 0; first < inputs; first += piece) {
        i64 columns = smaller(inputs - first, piece);
        multiply(Product{outputs, rows, columns, dy_ro, 1, outputs, x_ri + first, inputs, 1, nullptr, dw_oi,
                         Finish::none, nullptr, CHAIN_ROWS, totals});
        for (i64 i = 0; i < columns; ++i)
            for (i64 o = 0; o < outputs; ++o) dw_io[(first + i) * outputs + o] = dw_oi[o * columns + i];
    }
}

// totals: inputs x (outputs, in whole 16s, at most 512); may be null for at most CHAIN_ROWS rows, or one output.
ST_KERNEL void dense_grad_weight(i64 rows, i64 inputs, i64 outputs, const f32 *x_ri, const f32 *dy_ro, f32 *dw_io,
                                 f32 *db_o, f64 *totals) {
    if (outputs == 1) return dense_grad_weight_one(rows, inputs, x_ri, dy_ro, dw_io, db_o);
    dense_grad_bias(rows, outputs, dy_ro, db_o);
    if (outputs <= few_outputs)
        dense_grad_weight_few(rows, inputs, outputs, x_ri, dy_ro, dw_io);
    else
        multiply(Product{inputs, rows, outputs, x_ri, 1, inputs, dy_ro, outputs, 1, nullptr, dw_io,
                         Finish::none, nullptr, CHAIN_ROWS, totals});
}
ST_EXPORT_HOST(dense_grad_weight)
#endif
