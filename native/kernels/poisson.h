// Of a count y: rate = e^z, loss = rate - y + y (log y - z), half the deviance: the negative log likelihood less that
// of the rate y; its slope is rate - y.
#pragma once
#include "base/kernel.h"

constexpr f32 largest_log_rate = 88.0f;   // of a float

ST_INLINE f32 rate_of(f32 z) { return exp(z > largest_log_rate ? largest_log_rate : z); }   // a NaN stays one

ST_KERNEL void poisson(i64 rows, const f32 *z_r, const f32 *label_r, const f32 *weight_r, const StepBlock *step,
                       f32 *dz_r, f32 *loss_r, f32 *p_r) {
    each_row(rows, weight_r, step, dz_r, loss_r, [&](i64 r) -> RowLoss {
        f32 z = z_r[r], y = label_r[r], rate = rate_of(z);
        p_r[r] = rate;
        return {rate - y + (y > 0 ? y * (log(y) - z) : 0.0f), rate - y};
    });
}
ST_EXPORT(poisson)

ST_KERNEL void poisson_rate(i64 n, const f32 *z, f32 *p) {
    ST_FOR(i, n) p[i] = rate_of(z[i]);
}
ST_EXPORT(poisson_rate)

// The log of the mean label so far, from seen_2 = (weight, weighted label), with half an event in half a row
// beforehand.
ST_KERNEL void poisson_prior(const f64 *seen_2, f32 *offset) {
    ST_FOR(once, 1) offset[0] = static_cast<f32>(log((seen_2[1] + 0.5) / (seen_2[0] + 0.5)));
}
ST_EXPORT(poisson_prior)

ST_KERNEL void poisson_seen(i64 rows, const f32 *label_r, const f32 *weight_r, f64 *seen_2) {
    ST_ROWS(once, 1) {
        f64 weight = sum<f64>(rows, [&](i64 r) { return weight_r[r] > 0 ? f64(weight_r[r]) : 0.0; });
        f64 label = sum<f64>(rows, [&](i64 r) { return weight_r[r] > 0 ? f64(weight_r[r]) * label_r[r] : 0.0; });
        ST_FIRST_LANE {
            seen_2[0] += weight;
            seen_2[1] += label;
        }
    }
}
ST_EXPORT(poisson_seen)
