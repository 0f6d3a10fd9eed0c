// The constant prediction of each row over classes, as logits: the shares of the weights of the rows before it, times
// their class weights and smoothed as in smoothed_prior.h. seen_c is scratch.
#pragma once
#include "base/kernel.h"

// class_of(r) is one of the classes for any row r.
template <class ClassOf>
ST_INLINE void running_prior(i64 rows, i64 outputs, i64 classes, f32 smoothing, const f32 *weight_r,
                             const f64 *base_c, const f64 *share_c, const f32 *class_weight_c, f64 *seen_c, f32 *z_rk,
                             ClassOf class_of) {
    f64 total = 0;
    for (i64 c = 0; c < classes; ++c) total += (base_c[c] + share_c[c] + 0.5) * f64(class_weight_c[c]);
    ST_LANES(c, classes) seen_c[c] = (base_c[c] + share_c[c] + 0.5) * f64(class_weight_c[c]);
    meet();
    for (i64 r = 0; r < rows; ++r) {
        auto share = [&](i64 c) {
            f64 plain = seen_c[c] / total;
            return plain + f64(smoothing) * (1 / f64(classes) - plain);
        };
        f32 *z = z_rk + r * outputs;
        ST_LANES(k, outputs) z[k] = static_cast<f32>(log(outputs == 1 ? share(1) / share(0) : share(k)));
        i64 label = class_of(r);
        f64 added = weight_r[r] > 0 ? f64(weight_r[r]) * f64(class_weight_c[label]) : 0.0;
        total += added;
        meet();
        ST_FIRST_LANE seen_c[label] += added;
        meet();
    }
}

ST_KERNEL void running_odds(i64 rows, f32 smoothing, const f32 *label_r, const f32 *weight_r, const f64 *base_2,
                            const f64 *share_2, const f32 *class_weight_2, f64 *seen_2, f32 *z_r) {
    ST_ROWS(once, 1) {
        auto class_of = [&](i64 r) { return label_r[r] >= 0.5f ? i64(1) : i64(0); };
        running_prior(rows, 1, 2, smoothing, weight_r, base_2, share_2, class_weight_2, seen_2, z_r, class_of);
    }
}
ST_EXPORT(running_odds)

ST_KERNEL void running_shares(i64 rows, i64 classes, f32 smoothing, const i32 *label_r, const f32 *weight_r,
                              const f64 *base_c, const f64 *share_c, const f32 *class_weight_c, f64 *seen_c,
                              f32 *z_rc) {
    ST_ROWS(once, 1) {
        auto class_of = [&](i64 r) { return label_r[r] >= 0 && label_r[r] < classes ? i64(label_r[r]) : i64(0); };
        running_prior(rows, classes, classes, smoothing, weight_r, base_c, share_c, class_weight_c, seen_c, z_rc,
                      class_of);
    }
}
ST_EXPORT(running_shares)
