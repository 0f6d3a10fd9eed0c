// quantiles -- of columns: how many values lay in each cell (base/sketch.h) and in all, added; then the edges that part
// them into as many equal shares as there are edges and one more, found where the cells are folded.
#pragma once
#include <functional>

#include "base/sketch.h"
#include "state/parts.h"

namespace st::rules {

constexpr u64 QUANTILE_TOTAL = sketch_cells, QUANTILE_EDGES = sketch_cells + 1;   // elements of a row

// The value below which `rank` of the values lie: within a cell they lie evenly.
inline f64 value_at(const f64 *cells, f64 rank, i64 &cell, f64 &before) {
    while (cell < sketch_cells - 1 && before + cells[cell] < rank) before += cells[cell++];
    const i64 away = cell - sketch_side, side = away < 0 ? -away : away;
    if (side == 0 || !(cells[cell] > 0)) return away < 0 ? -sketch_bound(side) : sketch_bound(side);
    const f64 low = sketch_bound(side), high = sketch_bound(side + 1), part = (rank - before) / cells[cell];
    return away < 0 ? -high + part * (high - low) : low + part * (high - low);
}

inline void join_quantiles(const StateBlock &block, const RoundStart &, const Contributions &all, u8 *joined) {
    parts::joined_by<f64>(block, all, joined, std::plus<>());
}

inline void fold_quantiles(const StateBlock &block, const RoundStart &start, u8 *mean) {
    parts::folded_by<f64>(block, start, mean, std::plus<>());
    f64 *row = reinterpret_cast<f64 *>(mean + block.offset);
    const u64 width = block.row_elements();
    for (u64 r = 0; r < block.rows(); ++r, row += width) {
        i64 cell = 0;
        f64 before = 0;
        for (u64 edge = QUANTILE_EDGES; edge < width; ++edge) {
            const f64 parts = static_cast<f64>(width - QUANTILE_EDGES + 1);
            const f64 share = static_cast<f64>(edge - QUANTILE_EDGES + 1) / parts;
            row[edge] = row[QUANTILE_TOTAL] > 0 ? value_at(row, share * row[QUANTILE_TOTAL], cell, before) : 0;
        }
    }
}

constexpr Rule quantiles{Dtype::f64, Part::statistics, false,
                         parts::gathered_from_zero, parts::as_stepped, join_quantiles, fold_quantiles, parts::whole};

}  // namespace st::rules
