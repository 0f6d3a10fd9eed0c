// A column's values in cells whose bounds are a 32nd apart, by the bits of a float64, from 2^-32 to 2^32 on both sides
// of 0: counts that any number of workers can add, from which quantiles are found to 3 % (after Masson, Rim and Lee:
// DDSketch, 2019). What lies closer to 0 is 0, what lies further out is in the outermost cell.
#pragma once
#include "base/math.h"

namespace st {
inline namespace ST_ISA {

constexpr i32 sketch_parts_bits = 5;                        // 32 cells from a power of two to the next
constexpr i32 sketch_shift = 52 - sketch_parts_bits;
constexpr i64 sketch_first = (1023 - 32) << sketch_parts_bits;   // of 2^-32
constexpr i64 sketch_side = 64 << sketch_parts_bits;
constexpr i64 sketch_cells = 2 * sketch_side + 1;           // negative ones, 0, positive ones

ST_INLINE i64 sketch_cell(f64 x) {
    const i64 away = (bits_of(abs(x)) >> sketch_shift) - sketch_first + 1;
    const i64 inside = away < 0 ? 0 : away > sketch_side ? sketch_side : away;
    return sketch_side + (x < 0 ? -inside : inside);
}

// Where the cells of a side begin, counted from 0: that of cell `away`, and where that ends is where the next begins.
ST_INLINE f64 sketch_bound(i64 away) {
    return away <= 0 ? 0.0 : from_bits((away - 1 + sketch_first) << sketch_shift);
}

}  // namespace ST_ISA
}  // namespace st
