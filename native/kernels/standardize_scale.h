// mean and 1 / standard deviation of the chosen columns from their moments (count, mean, sum of squared deviations);
// 0 and 1 for the others, and where nothing was seen; a column that never varied is only centred.
#pragma once
#include "base/kernel.h"

ST_KERNEL void standardize_scale(i64 columns, const f64 *moments_c3, const u8 *chosen_c, f32 *mean_c, f32 *scale_c) {
    ST_FOR(c, columns) {
        f64 count = moments_c3[3 * c], mean = moments_c3[3 * c + 1], squares = moments_c3[3 * c + 2];
        bool known = chosen_c[c] != 0 && count > 0;
        mean_c[c] = known ? static_cast<f32>(mean) : 0.0f;
        scale_c[c] = known && squares > 0 ? static_cast<f32>(sqrt(count / squares)) : 1.0f;
    }
}
ST_EXPORT(standardize_scale)
