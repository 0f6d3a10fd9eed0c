// The weights that lead to each output, a column of w_io, shrunk to a norm of at most `limit` (Srivastava et al.:
// Dropout, 2014, section 5.1).
#pragma once
#include "base/kernel.h"

ST_KERNEL void max_norm(i64 inputs, i64 outputs, const StepBlock *step, f32 limit, f32 *w_io) {
    if (!(step->weight_sum > 0)) return;
    ST_ROWS(o, outputs) {
        f32 *w = w_io + o;
        f64 norm = sqrt(sum<f64>(inputs, [&](i64 i) { return f64(w[i * outputs]) * f64(w[i * outputs]); }));
        if (!(norm > limit)) continue;
        f32 scale = f32(limit / norm);
        ST_LANES(i, inputs) w[i * outputs] *= scale;
    }
}
ST_EXPORT(max_norm)
