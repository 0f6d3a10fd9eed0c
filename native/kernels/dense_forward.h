// y_ro = x_ri w_io + bias_o, then the activation (0 none, 1 relu): each element one fma chain in ascending i from bias.
#pragma once
#include "base/kernel.h"

ST_KERNEL void dense_forward(i64 rows, i64 inputs, i64 outputs, const f32 *x_ri, const f32 *w_io, const f32 *bias_o,
                             i32 activation, f32 *y_ro) {
    ST_ROWS(r, rows) {
        f32 *y = y_ro + r * outputs;
        ST_FOR(o, outputs) y[o] = bias_o[o];
        for (i64 i = 0; i < inputs; ++i) {
            f32 x = x_ri[r * inputs + i];
            ST_FOR(o, outputs) y[o] = fma(x, w_io[i * outputs + o], y[o]);
        }
        if (activation == 1) ST_FOR(o, outputs) y[o] = y[o] > 0 ? y[o] : 0;
    }
}
ST_EXPORT_HOST(dense_forward)
