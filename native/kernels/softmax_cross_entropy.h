// p = softmax(z), loss = -log p[label] = log(sum e^(z - max)) - (z[label] - max),
// dz = weight (p - one_hot(label)) / weight sum.
// rank_r: how many classes are likelier than the label's, of equals those before it.
// Rows of weight 0 have loss and dz 0; a label outside the classes counts as class 0 (decoders refuse it before).
#pragma once
#include "kernels/softmax.h"

ST_KERNEL void softmax_cross_entropy(i64 rows, i64 classes, const f32 *z_rk, const i32 *label_r, const f32 *weight_r,
                                     const StepBlock *step, f32 *dz_rk, f32 *loss_r, f32 *p_rk, i32 *rank_r) {
    f64 share = share_of_weight(step);
    ST_ROWS(r, rows) {
        const f32 *z = z_rk + r * classes;
        f32 *p = p_rk + r * classes, *dz = dz_rk + r * classes, weight = weight_r[r];
        i64 label = label_r[r] >= 0 && label_r[r] < classes ? label_r[r] : 0;
        f32 largest = maximum<f32>(classes, z[0], [&](i64 k) { return z[k]; });
        const f32 total = powers_of_row(classes, z, largest, p), of_all = 1.0f / total;
        meet();
        const f32 at_label = p[label] * of_all, part = static_cast<f32>(weight * share);
        meet();
        const i32 before = sum<i32>(classes, [&](i64 k) {
            const f32 its = p[k] * of_all;
            p[k] = its;
            dz[k] = weight > 0 ? part * (its - (k == label ? 1.0f : 0.0f)) : 0.0f;
            return its > at_label || (its == at_label && k < label) ? 1 : 0;
        });
        ST_FIRST_LANE rank_r[r] = at_label == at_label ? before : static_cast<i32>(classes);
        ST_FIRST_LANE loss_r[r] = weight > 0 ? log(total) - (z[label] - largest) : 0.0f;
    }
}
ST_EXPORT(softmax_cross_entropy)
