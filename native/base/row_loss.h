// What losses of a row's outputs have in common: its loss, and the slope of that by its score. A row of weight 0 has
// loss and gradient 0 whatever it holds.
#pragma once
#include "base/lane.h"
#include "base/share.h"

namespace st {
inline namespace ST_ISA {

struct RowLoss {
    f32 loss, slope;
};

template <class At>
ST_INLINE void each_row(i64 rows, const f32 *weight_r, const StepBlock *step, f32 *dz_r, f32 *loss_r, At at) {
    f64 share = share_of_weight(step);
    ST_FOR(r, rows) {
        f32 weight = weight_r[r];
        RowLoss row = at(r);
        loss_r[r] = weight > 0 ? row.loss : 0.0f;
        dz_r[r] = weight > 0 ? static_cast<f32>(weight * share) * row.slope : 0.0f;
    }
}

// Of a number: at(z - t) with the label t = (y - mean) * scale; p = z / scale + mean is in the label's own unit.
template <class At>
ST_INLINE void each_number(i64 rows, const f32 *z_r, const f32 *label_r, const f32 *weight_r, const f32 *mean,
                           const f32 *scale, const StepBlock *step, f32 *dz_r, f32 *loss_r, f32 *p_r, At at) {
    each_row(rows, weight_r, step, dz_r, loss_r, [&](i64 r) {
        p_r[r] = z_r[r] / scale[0] + mean[0];
        return at(z_r[r] - (label_r[r] - mean[0]) * scale[0]);
    });
}

}  // namespace ST_ISA
}  // namespace st
