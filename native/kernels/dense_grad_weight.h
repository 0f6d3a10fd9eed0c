// dw_io = x_ri^T dy_ro, each element one fma chain in ascending r from 0; db_o = the plain sum of dy_ro's rows in the
// same order. The tiles of base/tile.h; few outputs are computed as dy^T x, so that inputs fill the lanes.
#pragma once
#include "base/kernel.h"

#if !ST_CUDA   // there it is cuBLAS

// What `workspace` must hold: nothing, it may be null.
constexpr i64 dense_workspace_floats(i64, i64, i64) { return 0; }

// One output: a weighted sum of the rows of x (here of `vectors` vectors of each row), and the sum of the weights.
template <int vectors>
void sum_weighted_rows(i64 rows, i64 x_row, const f32 *x, int last, const f32 *dy_r, f32 *dw, f32 *db) {
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
        store_lanes(dw + v * vector_lanes, sum[v], v == vectors - 1 ? last : vector_lanes);
    db[0] = total;
}

template <int vectors>
void sum_rows(i64 rows, i64 dy_row, const f32 *dy, int last, f32 *db) {
    Vector sum[vectors];
    ST_UNROLL for (int v = 0; v < vectors; ++v) sum[v] = Vector{};
    for (i64 r = 0; r < rows; ++r, dy += dy_row)
        ST_UNROLL for (int v = 0; v < vectors; ++v)
            sum[v] += load_lanes(dy + v * vector_lanes, v == vectors - 1 ? last : vector_lanes);
    ST_UNROLL for (int v = 0; v < vectors; ++v)
        store_lanes(db + v * vector_lanes, sum[v], v == vectors - 1 ? last : vector_lanes);
}

// Calls work(vectors as a constant, first column, columns in the last vector) for each piece of at most 8 vectors.
template <class Work, int... count>
ST_INLINE void by_pieces(i64 columns, std::integer_sequence<int, count...>, Work work) {
    for (i64 column = 0; column < columns; column += 8 * vector_lanes) {
        i64 left = smaller<i64>(columns - column, 8 * vector_lanes);
        i64 vectors = (left + vector_lanes - 1) / vector_lanes;
        int last = static_cast<int>(left - (vectors - 1) * vector_lanes);
        ((vectors == count + 1 ? work(std::integral_constant<int, count + 1>{}, column, last) : void()), ...);
    }
}

constexpr i64 few_outputs = vector_lanes / 2;

static void dense_grad_weight_few(i64 rows, i64 inputs, i64 outputs, const f32 *x_ri, const f32 *dy_ro, f32 *dw_io) {
    constexpr i64 piece = 4 * panel_columns;
    f32 dw_oi[few_outputs * piece];
    for (i64 first = 0; first < inputs; first += piece) {
        i64 columns = smaller(inputs - first, piece);
        multiply(Product{outputs, rows, columns, dy_ro, 1, outputs, x_ri + first, inputs, 1, nullptr, dw_oi,
                         Finish::none, nullptr});
        for (i64 i = 0; i < columns; ++i)
            for (i64 o = 0; o < outputs; ++o) dw_io[(first + i) * outputs + o] = dw_oi[o * columns + i];
    }
}

ST_KERNEL void dense_grad_weight(i64 rows, i64 inputs, i64 outputs, const f32 *x_ri, const f32 *dy_ro, f32 *dw_io,
                                 f32 *db_o, f32 *workspace) {
    (void)workspace;
    std::make_integer_sequence<int, 8> pieces;
    if (outputs == 1) {
        by_pieces(inputs, pieces, [&](auto vectors, i64 i, int last) {
            sum_weighted_rows<vectors()>(rows, inputs, x_ri + i, last, dy_ro, dw_io + i, db_o);
        });
        return;
    }
    by_pieces(outputs, pieces, [&](auto vectors, i64 o, int last) {
        sum_rows<vectors()>(rows, outputs, dy_ro + o, last, db_o + o);
    });
    if (outputs <= few_outputs)
        dense_grad_weight_few(rows, inputs, outputs, x_ri, dy_ro, dw_io);
    else
        multiply(Product{inputs, rows, outputs, x_ri, 1, inputs, dy_ro, outputs, 1, nullptr, dw_io,
                         Finish::none, nullptr});
}
ST_EXPORT_HOST(dense_grad_weight)
#endif
