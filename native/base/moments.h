// What is known of a standardised column, and how far from its mean a value may be: one formula for kernels, averager
// and first round. A value further out than `reach` enters the moments as if it were there, so that one wrong cell does
// not spoil a column for ever; the more of them have been seen, the further the reach, so that what comes again and
// again is taken for what it is (a flag set in one row of a thousand lies 32 deviations out).
#pragma once
#include "base/math.h"

namespace st {
inline namespace ST_ISA {

// A row of a `moments` block, in a state and in a worker's share of a round.
struct ColumnMoments {
    f64 count, mean;
    f64 squares;      // sum of squared deviations from the mean
    f64 clip;         // setting: deviations at which the model's value is cut; 0: nothing is cut or held back
    f64 half_life;    // setting: rows after which what was seen weighs half; 0: nothing is forgotten
    f64 floor;        // setting: the least standard deviation the model's value is divided by; below it is only centred
    f64 outside;      // values beyond the reach
    f64 least;        // the least distance of one of them from the mean; 0: none yet
    f64 clipped;      // values the model saw cut
    f64 raw_mean, raw_squares;   // of a share: of the values as they came; 0 in a state
};
constexpr int moments_width = sizeof(ColumnMoments) / sizeof(f64);

constexpr f64 least_deviation = 1e-30;            // its inverse is a float32
constexpr f64 double_spacing = 1.0 / (1ll << 52);   // of a float64, relative
constexpr f64 beyond_any = 1e300;

// The standard deviation; 0 where nothing was seen or float64 cannot tell the values apart.
ST_INLINE f64 deviation_of(const ColumnMoments &column) {
    if (!(column.count > 0)) return 0;
    f64 deviation = sqrt(column.squares / column.count);
    return deviation < least_deviation || deviation < abs(column.mean) * double_spacing ? 0 : deviation;
}

// How far from the mean a value enters as it is. While nothing has varied: as far as the nearest that did.
ST_INLINE f64 reach_of(const ColumnMoments &column) {
    if (!(column.clip > 0) || !(column.count > 0)) return beyond_any;
    f64 deviation = deviation_of(column);
    return (deviation > 0 ? column.clip * deviation : column.least) * sqrt(1 + column.outside);
}

// `count` values whose mean and sum of squared deviations are given, merged into count, mean and squares.
ST_INLINE void merge_moments(f64 count, f64 mean, f64 squares, f64 &to_count, f64 &to_mean, f64 &to_squares) {
    if (!(count > 0)) return;
    f64 total = to_count + count, delta = mean - to_mean;
    to_squares += squares + delta * delta * (to_count * count / total);
    to_mean += delta * (count / total);
    to_count = total;
}

ST_INLINE f64 nearer(f64 a, f64 b) { return a > 0 && (b <= 0 || a < b) ? a : b; }   // the lesser distance; 0: none

}  // namespace ST_ISA
}  // namespace st
