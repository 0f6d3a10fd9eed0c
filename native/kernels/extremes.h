// Of a column of numbers how many there were, the least and the greatest: extremes_3.
#pragma once
#include "base/kernel.h"

// The rows of weight above 0 of a batch.
ST_KERNEL void extremes_add(i64 rows, i64 columns, i64 column, const f64 *numbers_rc, const f32 *weight_r,
                            f64 *extremes_3) {
    ST_ROWS(once, 1) {
        auto value_of = [&](i64 r) { return numbers_rc[r * columns + column]; };
        const f64 count = sum<f64>(rows, [&](i64 r) { return weight_r[r] > 0 ? 1.0 : 0.0; });
        const f64 none = -1e300;
        const f64 least = -maximum<f64>(rows, none, [&](i64 r) { return weight_r[r] > 0 ? -value_of(r) : none; });
        const f64 greatest = maximum<f64>(rows, none, [&](i64 r) { return weight_r[r] > 0 ? value_of(r) : none; });
        ST_FIRST_LANE {
            const bool seen = extremes_3[0] > 0;
            if (count > 0) {
                extremes_3[1] = seen ? smaller(extremes_3[1], least) : least;
                extremes_3[2] = seen ? larger(extremes_3[2], greatest) : greatest;
                extremes_3[0] += count;
            }
        }
    }
}
ST_EXPORT(extremes_add)

// x_rw[r, at]: where the number of row r lies from the least (0) to the greatest (1), not beyond them; 0 where they are
// the same, or none was seen.
ST_KERNEL void extremes_scale(i64 rows, i64 columns, i64 column, i64 width, i64 at, const f64 *numbers_rc,
                              const f64 *extremes_3, f32 *x_rw) {
    const f64 range = extremes_3[2] - extremes_3[1], scale = range > 0 ? 1 / range : 0.0, least = extremes_3[1];
    ST_FOR(r, rows) {
        const f64 z = (numbers_rc[r * columns + column] - least) * scale;
        x_rw[r * width + at] = static_cast<f32>(z > 1 ? 1.0 : z < 0 ? 0.0 : z);
    }
}
ST_EXPORT(extremes_scale)
