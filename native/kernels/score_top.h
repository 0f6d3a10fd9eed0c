// top_m += the weight of the rows whose label is among the `most_m` likeliest classes. rank_r: how many classes are
// likelier than a row's label.
#pragma once
#include "base/kernel.h"

ST_KERNEL void score_top(i64 rows, i64 count, const i32 *rank_r, const f32 *weight_r, const i32 *most_m, f64 *top_m) {
    ST_ROWS(m, count) {
        const i32 most = most_m[m];
        const f64 found =
            sum<f64>(rows, [&](i64 r) { return weight_r[r] > 0 && rank_r[r] < most ? f64(weight_r[r]) : 0.0; });
        ST_FIRST_LANE top_m[m] += found;
    }
}
ST_EXPORT(score_top)
