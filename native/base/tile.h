// The matrix product on CPU: C = start + A B, each element one chain of fused multiply-adds in ascending k, or chains
// of a given length added in double, so that its bits depend on neither tiling, threads nor instruction set. Tiles of
// 6 x 64 (AVX-512) or 6 x 16 (AVX2) stay in registers over a panel of B in L1. One Zen 5 core: 240-256 GFLOP/s (AVX2
// 131), OpenBLAS 113-128; figures are those of tests/bench/bench_matmul.py.
#pragma once
#include "base/vector.h"

namespace st {
inline namespace ST_ISA {

// Accumulators (6 rows x vectors), one row of B and a broadcast fill the registers: 32 or 16.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int panel_vectors = 4;
#else
constexpr int panel_vectors = 2;
#endif
constexpr int panel_columns = panel_vectors * vector_lanes;
constexpr i64 panel_depth = 8192 / panel_columns;   // 32 KiB: leaves room for A and C in an L1 of 48 KiB

enum class Finish { none, relu, mask };   // y <= 0 becomes 0; or where mask <= 0. A NaN stays NaN.

// A chain's sums: left in C; or put into the totals; or added to them; or, of the last chain, with them into C.
enum class Chain { only, first, next, last };

// A(row, k) = a[row * a_row + k * a_step], B(k, column) = b[k * b_step + column * b_column] with b_step or b_column 1;
// C is rows x columns, contiguous, and overlaps nothing else.
struct Product {
    i64 rows, depth, columns;
    const f32 *a;
    i64 a_row, a_step;
    const f32 *b;
    i64 b_step, b_column;
    const f32 *start;   // one a column; null: 0
    f32 *c;
    Finish finish;
    const f32 *mask;    // shaped as C
    i64 chain = 0;          // length of a chain; 0: the depth
    f64 *totals = nullptr;  // rows x a panel's columns, padded to whole vectors; may be null where there is one chain
};

// A stretch of B's rows, up to panel_columns wide, padded to whole vectors.
struct Panel {
    const f32 *b;
    i64 b_step, depth;
    const f32 *start;   // null: go on from what C holds
    int last;           // columns of C in the panel's last vector
    Finish finish;
    Chain chain;
};

// What becomes of a vector of a chain's sums; true where the result is in `y`, for C.
ST_INLINE bool add_chain(Chain chain, Vector &y, f64 *totals) {
    if (chain == Chain::only) return true;
    Doubles halves[2];
    to_doubles(y, halves);
    if (chain != Chain::first)
        ST_UNROLL for (int h = 0; h < 2; ++h) halves[h] += load(totals + h * vector_lanes / 2);
    if (chain == Chain::last) {
        y = to_floats(halves);
        return true;
    }
    ST_UNROLL for (int h = 0; h < 2; ++h) store(totals + h * vector_lanes / 2, halves[h]);
    return false;
}

template <int rows, int vectors>
__attribute__((noinline)) void tile(const Panel &panel, const f32 *a, i64 a_row, i64 a_step, f32 *c, i64 c_row,
                                    const f32 *mask, f64 *totals) {
    constexpr int n = vector_lanes;
    Vector sum[rows][vectors];
    ST_UNROLL for (int r = 0; r < rows; ++r)
        ST_UNROLL for (int v = 0; v < vectors; ++v)
            sum[r][v] = panel.start ? load(panel.start + v * n)
                                    : load_lanes(c + r * c_row + v * n, v == vectors - 1 ? panel.last : n);
    const f32 *b = panel.b;
    i64 b_step = panel.b_step;
    for (i64 k = panel.depth; k > 0; --k, a += a_step, b += b_step) {
        Vector b_row[vectors];
        ST_UNROLL for (int v = 0; v < vectors; ++v) b_row[v] = load(b + v * n);
        ST_UNROLL for (int r = 0; r < rows; ++r) {
            Vector x = broadcast(a[r * a_row]);
            ST_UNROLL for (int v = 0; v < vectors; ++v) sum[r][v] = fma(x, b_row[v], sum[r][v]);
        }
    }
    ST_UNROLL for (int r = 0; r < rows; ++r)
        ST_UNROLL for (int v = 0; v < vectors; ++v) {
            int count = v == vectors - 1 ? panel.last : n;
            i64 at = r * c_row + v * n;
            Vector y = sum[r][v];
            if (!add_chain(panel.chain, y, totals + (r * vectors + v) * n)) continue;
            if (panel.finish == Finish::relu) y = y <= 0 ? Vector{} : y;
            if (panel.finish == Finish::mask) y = load_lanes(mask + at, count) <= 0 ? Vector{} : y;
            store_lanes(c + at, y, count);
        }
}

template <int rows, int vectors>
ST_INLINE void tiles(const Product &p, const Panel &panel, i64 &row, i64 k, i64 column) {
    for (; row + rows <= p.rows; row += rows) {
        i64 at = row * p.columns + column;
        tile<rows, vectors>(panel, p.a + row * p.a_row + k * p.a_step, p.a_row, p.a_step, p.c + at, p.columns,
                            p.mask ? p.mask + at : nullptr, p.totals + row * vectors * vector_lanes);
    }
}

template <int vectors>
void multiply_panel(const Product &p, const Panel &panel, i64 k, i64 column) {
    i64 row = 0;
    tiles<vectors == panel_vectors ? 6 : 8, vectors>(p, panel, row, k, column);
    tiles<4, vectors>(p, panel, row, k, column);
    tiles<2, vectors>(p, panel, row, k, column);
    tiles<1, vectors>(p, panel, row, k, column);
}

// depth x columns of B, its rows contiguous, to rows of `width` floats, 0 behind the columns.
ST_INLINE void pack_rows(f32 *to, i64 width, const f32 *b, i64 b_step, i64 depth, i64 columns) {
    for (i64 k = 0; k < depth; ++k, to += width, b += b_step)
        for (i64 column = 0; column < width; column += vector_lanes)
            store(to + column, load_lanes(b + column, static_cast<int>(smaller<i64>(vector_lanes, columns - column))));
}

// The same with B's columns contiguous.
ST_INLINE void pack_columns(f32 *to, i64 width, const f32 *b, i64 b_column, i64 depth, i64 columns) {
    for (i64 column = 0; column < width; column += vector_lanes, to += vector_lanes, b += vector_lanes * b_column) {
        i64 left = columns - column, k = 0;
        for (; left >= vector_lanes && k + 4 <= depth; k += 4) {
            Vector v[4];
            load_columns(b + k, b_column, v);
            ST_UNROLL for (int j = 0; j < 4; ++j) store(to + (k + j) * width, v[j]);
        }
        for (; k < depth; ++k)
            for (i64 lane = 0; lane < vector_lanes; ++lane)
                to[k * width + lane] = lane < left ? b[lane * b_column + k] : 0;
    }
}

inline void multiply(const Product &p) {
    alignas(64) f32 packed[panel_columns * panel_depth];
    for (i64 column = 0; column < p.columns; column += panel_columns) {
        i64 columns = smaller<i64>(p.columns - column, panel_columns);
        int vectors = static_cast<int>((columns + vector_lanes - 1) / vector_lanes);
        int width = vectors * vector_lanes;
        alignas(64) f32 start[panel_columns] = {};
        if (p.start) __builtin_memcpy(start, p.start + column, static_cast<std::size_t>(columns) * sizeof(f32));
        // whole vectors in rows not far apart (far ones fall into few sets of the L1) are used where they are
        bool in_place = p.b_column == 1 && columns == width && p.b_step <= 2 * panel_columns;
        const i64 chain = p.chain ? p.chain : p.depth;
        i64 k = 0, begun = 0;   // begun: the k at which the chain begins
        do {
            i64 end = smaller(begun + chain, p.depth), depth = smaller(end - k, panel_depth);
            const f32 *b = p.b + k * p.b_step + column * p.b_column;
            if (!in_place) {
                if (p.b_column == 1) pack_rows(packed, width, b, p.b_step, depth, columns);
                else pack_columns(packed, width, b, p.b_column, depth, columns);
            }
            bool ends = k + depth == end;   // the chain; until then C holds its sums so far
            Panel panel{in_place ? b : packed, in_place ? p.b_step : width, depth, k == begun ? start : nullptr,
                        static_cast<int>(columns) - width + vector_lanes,
                        k + depth < p.depth ? Finish::none : p.finish,
                        !ends || chain >= p.depth ? Chain::only
                        : begun == 0 ? Chain::first : end == p.depth ? Chain::last : Chain::next};
            if (vectors == 1) multiply_panel<1>(p, panel, k, column);
            if (vectors == 2) multiply_panel<2>(p, panel, k, column);
            if constexpr (panel_vectors == 4) {
                if (vectors == 3) multiply_panel<3>(p, panel, k, column);
                if (vectors == 4) multiply_panel<4>(p, panel, k, column);
            }
            k += depth;
            begun = ends ? k : begun;
        } while (k < p.depth);
    }
}

}  // namespace ST_ISA
}  // namespace st
