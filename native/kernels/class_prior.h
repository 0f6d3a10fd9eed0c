// What the constant prediction knows, as logits: offset_k = log of the share of class k by the weights seen, with half
// a count each beforehand; for a single output, the log odds of class 1. The network learns what lies beyond it.
#pragma once
#include "base/kernel.h"

ST_KERNEL void class_prior(i64 outputs, i64 classes, const f64 *seen_c, f32 *offset_k) {
    f64 total = 0.5 * f64(classes);
    for (i64 c = 0; c < classes; ++c) total += seen_c[c];
    ST_FOR(k, outputs) {
        f64 odds = outputs == 1 ? (seen_c[1] + 0.5) / (seen_c[0] + 0.5) : (seen_c[k] + 0.5) / total;
        offset_k[k] = static_cast<f32>(log(odds));
    }
}
ST_EXPORT(class_prior)

ST_KERNEL void add_offset(i64 rows, i64 outputs, const f32 *offset_k, f32 *z_rk) {
#if !ST_CUDA
    if (outputs == 1) {   // rows lie in the lanes
        const f32 offset = offset_k[0];
        ST_FOR(r, rows) z_rk[r] += offset;
        return;
    }
#endif
    ST_ROWS(r, rows) {
        f32 *z = z_rk + r * outputs;
        ST_LANES(k, outputs) z[k] += offset_k[k];
    }
}
ST_EXPORT(add_offset)
