// Of a column of numbers: how many lay in each cell, sketch_s: the cells (base/sketch.h), how many in all, then the
// edges that part them into equal shares.
#pragma once
#include "base/kernel.h"

// The rows of weight above 0 of a batch, added.
ST_KERNEL void sketch_add(i64 rows, i64 columns, i64 column, i64, const f64 *numbers_rc, const f32 *weight_r,
                          f64 *sketch_s) {
    auto cell_of = [&](i64 r) { return sketch_cell(numbers_rc[r * columns + column]); };
#if ST_CUDA   // the first row of a cell adds all of them
    ST_FOR(r, rows) {
        f64 all = 0, same = 0;
        bool leads = weight_r[r] > 0, first = leads;
        for (i64 q = 0; leads && q < r; ++q) {
            if (!(weight_r[q] > 0)) continue;
            first = false;
            leads = cell_of(q) != cell_of(r);
        }
        for (i64 q = r; leads && q < rows; ++q) {
            all += weight_r[q] > 0 ? 1 : 0;
            same += weight_r[q] > 0 && cell_of(q) == cell_of(r) ? 1 : 0;
        }
        if (leads) sketch_s[cell_of(r)] += same;
        if (first) sketch_s[sketch_cells] += all;
    }
#else
    i64 all = 0;
    for (i64 r = 0; r < rows; ++r) {
        if (!(weight_r[r] > 0)) continue;
        sketch_s[cell_of(r)] += 1;
        ++all;
    }
    sketch_s[sketch_cells] += f64(all);
#endif
}
ST_EXPORT(sketch_add)

// index_r[r]: how many of the edges are at most the number of row r; 0 where none was seen.
ST_KERNEL void sketch_bin(i64 rows, i64 columns, i64 column, i64 width, const f64 *numbers_rc, const f64 *sketch_s,
                          i32 *index_r) {
    const f64 *edges = sketch_s + sketch_cells + 1;
    const i64 count = sketch_s[sketch_cells] > 0 ? width - sketch_cells - 1 : 0;
    ST_FOR(r, rows) {
        const f64 x = numbers_rc[r * columns + column];
        i64 low = 0, high = count;
        while (low < high) {
            const i64 middle = (low + high) / 2;
            if (edges[middle] <= x) low = middle + 1;
            else high = middle;
        }
        index_r[r] = static_cast<i32>(low);
    }
}
ST_EXPORT(sketch_bin)

// y_rw[r, at]: (number - median) / (third quartile - first), cut at -clip and clip, of three edges; where half of the
// numbers are the same, the distance from the median alone; 0 where none was seen.
ST_KERNEL void sketch_scale(i64 rows, i64 columns, i64 column, i64, i64 y_width, i64 at, const f64 *numbers_rc,
                            const f64 *sketch_s, f64 clip, f32 *y_rw) {
    const f64 *edges = sketch_s + sketch_cells + 1;
    const f64 spread = edges[2] - edges[0], known = sketch_s[sketch_cells] > 0 ? 1.0 : 0.0;
    const f64 scale = known * (spread > 0 ? 1 / spread : 1.0), median = edges[1];
    ST_FOR(r, rows) {
        const f64 z = (numbers_rc[r * columns + column] - median) * scale;
        y_rw[r * y_width + at] = static_cast<f32>(z > clip ? clip : z < -clip ? -clip : z);
    }
}
ST_EXPORT(sketch_scale)
