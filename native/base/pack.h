// Blocks of a matrix product's operands, copied together for its tiles: rows that lie far apart fall into few sets of
// the L1, each in a page of its own.
#pragma once
#include "base/vector.h"

namespace st {
inline namespace ST_ISA {

constexpr i64 strip_rows = 48;   // of A where its rows lie along memory: whole cache lines, whole tiles of 6 and of 8

ST_INLINE i64 whole_vectors(i64 count) { return (count + vector_lanes - 1) / vector_lanes * vector_lanes; }

// Whole vectors, 0 behind the count.
ST_INLINE void copy_vectors(f32 *to, const f32 *from, i64 count) {
    for (i64 i = 0; i < count; i += vector_lanes)
        store(to + i, load_lanes(from + i, static_cast<int>(smaller<i64>(vector_lanes, count - i))));
}

// depth x columns of B, its rows contiguous, to rows of whole vectors.
ST_INLINE void pack_rows(f32 *to, const f32 *b, i64 b_step, i64 depth, i64 columns) {
    i64 width = whole_vectors(columns);
    for (i64 k = 0; k < depth; ++k, to += width, b += b_step) copy_vectors(to, b, columns);
}

// The same with B's columns contiguous.
ST_INLINE void pack_columns(f32 *to, const f32 *b, i64 b_column, i64 depth, i64 columns) {
    i64 width = whole_vectors(columns);
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

// Rows of A, each contiguous, one behind the other; gives the floats from one to the next.
ST_INLINE i64 pack_along(f32 *to, const f32 *a, i64 a_row, i64 rows, i64 depth) {
    i64 width = whole_vectors(depth);
    for (i64 row = 0; row < rows; ++row) copy_vectors(to + row * width, a + row * a_row, depth);
    return width;
}

// Rows of A that lie along memory: strip by strip, in each strip_rows floats for every k.
ST_INLINE void pack_strips(f32 *to, const f32 *a, i64 a_step, i64 rows, i64 depth) {
    for (i64 k = 0; k < depth; ++k, a += a_step, to += strip_rows)
        for (i64 row = 0; row < rows; row += strip_rows)
            copy_vectors(to + row * depth, a + row, smaller(rows - row, strip_rows));
}

}  // namespace ST_ISA
}  // namespace st
