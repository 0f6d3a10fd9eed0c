// A tile of a matrix product on CPU: 6 x 64 sums (AVX-512) or 6 x 16 (AVX2) stay in registers while a panel of B goes
// by, each of them one chain of fused multiply-adds in ascending k.
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

enum class Finish { none, relu, mask };   // y <= 0 becomes 0; or where mask <= 0. A NaN stays NaN.

// A chain's sums: left in C; or put into the totals; or added to them; or, of the last chain, with them into C.
enum class Chain { only, first, next, last };

// A stretch of B's rows, up to panel_columns wide, padded to whole vectors.
struct Panel {
    const f32 *b;
    i64 b_step, depth;
    const f32 *start;   // null: go on from what C holds
    int last;           // columns of C in the panel's last vector
    Finish finish;
    Chain chain;
};

// What becomes of a vector of a chain's sums; of the last chain it is the total.
template <Chain chain>
ST_INLINE void add_chain(Vector &y, f64 *totals) {
    Doubles halves[2];
    to_doubles(y, halves);
    if (chain != Chain::first)
        ST_UNROLL for (int h = 0; h < 2; ++h) halves[h] += load(totals + h * vector_lanes / 2);
    if (chain == Chain::last)
        y = to_floats(halves);
    else
        ST_UNROLL for (int h = 0; h < 2; ++h) store(totals + h * vector_lanes / 2, halves[h]);
}

// Memory that is wanted in L2 soon: every two k a line, `step` floats behind the one before.
struct Ahead {
    const f32 *at;
    i64 step;
};

template <int rows, int vectors>
__attribute__((noinline)) void tile(const Panel &panel, const f32 *a, i64 a_row, i64 a_step, f32 *c, i64 c_row,
                                    const f32 *mask, f64 *totals, Ahead ahead) {
    constexpr int n = vector_lanes;
    Vector sum[rows][vectors];
    auto each = [&](auto work) {   // work(sums, where in C, how many of them are, where in one row, in the totals)
        ST_UNROLL for (int r = 0; r < rows; ++r)
            ST_UNROLL for (int v = 0; v < vectors; ++v)
                work(sum[r][v], r * c_row + v * n, v == vectors - 1 ? panel.last : n, v * n, (r * vectors + v) * n);
    };
    if (panel.start)
        each([&](Vector &s, i64, int, int column, int) { s = load(panel.start + column); });
    else
        each([&](Vector &s, i64 at, int count, int, int) { s = load_lanes(c + at, count); });
    const f32 *b = panel.b;
    i64 b_step = panel.b_step, k = panel.depth;
    auto add = [&] {
        Vector b_row[vectors];
        ST_UNROLL for (int v = 0; v < vectors; ++v) b_row[v] = load(b + v * n);
        ST_UNROLL for (int r = 0; r < rows; ++r) {
            Vector x = broadcast(a[r * a_row]);
            ST_UNROLL for (int v = 0; v < vectors; ++v) sum[r][v] = fma(x, b_row[v], sum[r][v]);
        }
        a += a_step;
        b += b_step;
    };
    for (; k >= 2; k -= 2, ahead.at += ahead.step) {   // more at once costs registers for addresses
        __builtin_prefetch(ahead.at, 0, 2);
        ST_UNROLL for (int i = 0; i < 2; ++i) add();
    }
    if (k) add();
    auto add_chains = [&](auto chain) {
        each([&](Vector &s, i64, int, int, int at) { add_chain<chain()>(s, totals + at); });
    };
    if (panel.chain == Chain::first) return add_chains(std::integral_constant<Chain, Chain::first>{});
    if (panel.chain == Chain::next) return add_chains(std::integral_constant<Chain, Chain::next>{});
    if (panel.chain == Chain::last) add_chains(std::integral_constant<Chain, Chain::last>{});
    if (panel.finish == Finish::relu) each([](Vector &s, i64, int, int, int) { s = s <= 0 ? Vector{} : s; });
    if (panel.finish == Finish::mask)
        each([&](Vector &s, i64 at, int count, int, int) { s = load_lanes(mask + at, count) <= 0 ? Vector{} : s; });
    each([&](Vector &s, i64 at, int count, int, int) { store_lanes(c + at, s, count); });
}

}  // namespace ST_ISA
}  // namespace st
