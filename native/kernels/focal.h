// With x = z for label 1 and -z for 0, q = sigmoid(x) the probability of the label: loss = -a (1 - q)^gamma log q, a
// the balance for label 1 and 1 less it for 0. 1 - q = e^-s(x) and -log q = s(-x) with s(x) = log(1 + e^x).
#pragma once
#include "base/kernel.h"

ST_KERNEL void focal(i64 rows, f32 gamma, f32 balance, const f32 *z_r, const f32 *label_r, const f32 *weight_r,
                     const StepBlock *step, f32 *dz_r, f32 *loss_r) {
    each_row(rows, weight_r, step, dz_r, loss_r, [&](i64 r) -> RowLoss {
        bool positive = label_r[r] >= 0.5f;
        f32 x = positive ? z_r[r] : -z_r[r], e = exp(-abs(x)), tail = log1p(e), part = 1.0f / (1.0f + e);
        f32 right = x < 0 ? e * part : part, wrong = x < 0 ? part : e * part;   // q and 1 - q
        f32 surprise = tail + larger(-x, 0.0f), away = exp(-gamma * (tail + larger(x, 0.0f)));
        f32 factor = (positive ? balance : 1.0f - balance) * away, slope = -gamma * right * surprise - wrong;
        return {factor * surprise, factor * (positive ? slope : -slope)};
    });
}
ST_EXPORT(focal)
