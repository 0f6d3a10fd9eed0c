// Sums over rows that count half as much for each half-life of event time: table_tk, whose rows are `cells`. Row 0 is
// (epoch, newest), the time of the newest row in half-lives and one more, whole and as it is; 0 where nothing was seen.
// The others, one a bucket of a category and behind them that of all rows, or one alone, are the sums of x^0, x^1, ...
// as of the epoch's begin. What is told of far ahead of its batch counts as of the batch's fence, so that a few wrong
// times age nothing: four times as far beyond the median as the lower quartile lies before it (Tukey: Exploratory Data
// Analysis, 1977, whose fences are of both quartiles; late rows are no mistake), at least a half-life.
#pragma once
#include "base/kernel.h"

constexpr f64 decayed_ln2 = 0.69314718055994531, decayed_forgotten = 1000;

// What is left of what was as of the epoch's begin at the newest row.
ST_INLINE f64 decayed_now(const f64 *table_tk) { return exp((table_tk[0] - table_tk[1]) * decayed_ln2); }

ST_INLINE bool decayed_counts(i64 time, f32 weight) { return weight > 0 && time >= 0; }

// The earliest time that `wanted` of a batch's rows do not come after, between `low` and `high`.
ST_INLINE i64 decayed_rank(i64 rows, i64 t_columns, i64 t_column, const i64 *times_rt, const f32 *weight_r, i64 wanted,
                           i64 low, i64 high) {
    while (low < high) {
        const i64 middle = low + (high - low) / 2;
        i64 count = 0;
        for (i64 r = 0; r < rows; ++r) {
            const i64 time = times_rt[r * t_columns + t_column];
            count += decayed_counts(time, weight_r[r]) && time <= middle;
        }
        if (count < wanted) low = middle + 1;
        else high = middle;
    }
    return low;
}

// The fence of a batch, or the time of its newest row where that is earlier; 0 where no row counts.
ST_INLINE i64 decayed_latest(i64 rows, i64 t_columns, i64 t_column, const i64 *times_rt, const f32 *weight_r,
                             f64 half_life_ms) {
    i64 count = 0, oldest = 0, newest = 0;
    for (i64 r = 0; r < rows; ++r) {
        const i64 time = times_rt[r * t_columns + t_column];
        if (!decayed_counts(time, weight_r[r])) continue;
        oldest = count ? smaller(oldest, time) : time;
        newest = larger(newest, time);
        ++count;
    }
    if (f64(newest - oldest) <= half_life_ms) return newest;
    const i64 middle = decayed_rank(rows, t_columns, t_column, times_rt, weight_r, (count + 1) / 2, oldest, newest);
    const i64 lower = decayed_rank(rows, t_columns, t_column, times_rt, weight_r, (count + 3) / 4, oldest, middle);
    const f64 beyond = larger(4 * f64(middle - lower), half_life_ms);
    return f64(newest - middle) > beyond ? middle + i64(beyond) : newest;
}

// The rows of weight above 0 and of a time of a batch, in row order. Without categories they are of one cell, without
// numbers x is 1, with a half-life of 0 nothing is forgotten and no time is needed.
ST_KERNEL void decayed_add(i64 rows, i64 columns, i64 column, i64 cells, i64 width, i64 x_columns, i64 x_column,
                           i64 t_columns, i64 t_column, const i32 *categories_rc, const f64 *numbers_rx,
                           const i64 *times_rt, const f32 *weight_r, f64 half_life_ms, f64 *table_tk) {
    ST_ROWS(once, 1) {
        ST_FIRST_LANE {
            const i64 latest =
                half_life_ms > 0 ? decayed_latest(rows, t_columns, t_column, times_rt, weight_r, half_life_ms) : 0;
            for (i64 r = 0; r < rows; ++r) {
                const i64 time = half_life_ms > 0 ? smaller(times_rt[r * t_columns + t_column], latest) : 0;
                if (!decayed_counts(time, weight_r[r])) continue;
                const f64 position = half_life_ms > 0 ? f64(time) / half_life_ms + 1 : 1.0, epoch = f64(i64(position));
                if (epoch > table_tk[0]) {
                    const f64 epochs = epoch - table_tk[0];
                    const f64 kept = epochs > decayed_forgotten ? 0 : power_of_two<f64>(-i64(epochs));
                    for (i64 i = width; i < cells * width; ++i) table_tk[i] *= kept;
                    table_tk[0] = epoch;
                }
                table_tk[1] = larger(table_tk[1], position);
                const i64 cell = categories_rc ? embedding_bucket(categories_rc, r, columns, column, cells - 2) : 0;
                const f64 x = numbers_rx ? numbers_rx[r * x_columns + x_column] : 1.0;
                f64 term = exp((position - table_tk[0]) * decayed_ln2);
                for (i64 k = 0; k < width; ++k, term *= x) {
                    table_tk[(1 + cell) * width + k] += term;
                    if (categories_rc) table_tk[(cells - 1) * width + k] += term;
                }
            }
        }
    }
}
ST_EXPORT(decayed_add)

// y_rw[r, at] of the sum s of x^part in the cell of row r, as of the newest row: 0 log(1 + |s|) with the sign of s, 1
// its share of all rows', 2 s.
ST_KERNEL void decayed_value(i64 rows, i64 columns, i64 column, i64 cells, i64 width, i64 part, i64 y_width, i64 at,
                             i64 form, const i32 *categories_rc, const f64 *table_tk, f32 *y_rw) {
    const f64 now = decayed_now(table_tk), all = table_tk[(cells - 1) * width + part] * now;
    ST_FOR(r, rows) {
        const i64 cell = embedding_bucket(categories_rc, r, columns, column, cells - 2);
        const f64 s = table_tk[(1 + cell) * width + part] * now;
        const f64 value = form == 0 ? copysign(log(1 + abs(s)), s) : form == 1 ? (all > 0 ? s / all : 0.0) : s;
        y_rw[r * y_width + at] = static_cast<f32>(value);
    }
}
ST_EXPORT(decayed_value)

// y_rw[r, at]: (number - mean) / deviation by the sums of x^0, x^1, x^2, cut at -clip and clip; 0 where nothing was
// seen, only centred where numbers do not vary.
ST_KERNEL void decayed_scale(i64 rows, i64 columns, i64 column, i64 y_width, i64 at, const f64 *numbers_rc,
                             const f64 *table_tk, f64 clip, f32 *y_rw) {
    const f64 count = table_tk[3], known = count > 0 ? 1.0 : 0.0, by = count > 0 ? 1 / count : 0.0;
    const f64 mean = table_tk[4] * by, variance = table_tk[5] * by - mean * mean;
    const f64 scale = known * (variance > mean * mean * 1e-12 && variance > 1e-60 ? 1 / sqrt(variance) : 1.0);
    ST_FOR(r, rows) {
        const f64 z = (numbers_rc[r * columns + column] - mean) * scale;
        y_rw[r * y_width + at] = static_cast<f32>(z > clip ? clip : z < -clip ? -clip : z);
    }
}
ST_EXPORT(decayed_scale)
