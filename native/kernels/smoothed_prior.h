// The constant prediction of a weighted, smoothed cross entropy as logits: of class k the share of its weight so far
// times its class weight, with half a count each beforehand; of that a part, smoothing, spread over all classes. For a
// single output the log odds of class 1.
#pragma once
#include "base/kernel.h"

ST_KERNEL void smoothed_prior(i64 outputs, i64 classes, f32 smoothing, const f64 *seen_c, const f32 *class_weight_c,
                              f32 *offset_k) {
    f64 total = 0;
    for (i64 c = 0; c < classes; ++c) total += (seen_c[c] + 0.5) * f64(class_weight_c[c]);
    auto share = [&](i64 c) {
        f64 plain = (seen_c[c] + 0.5) * f64(class_weight_c[c]) / total;
        return plain + f64(smoothing) * (1 / f64(classes) - plain);
    };
    ST_FOR(k, outputs) offset_k[k] = static_cast<f32>(log(outputs == 1 ? share(1) / share(0) : share(k)));
}
ST_EXPORT(smoothed_prior)
