// dw_io = x_ri^T dy_ro and db_o = the column sums of dy_ro: each element one chain in ascending r from 0.
#pragma once
#include "base/kernel.h"

ST_KERNEL void dense_grad_weight(i64 rows, i64 inputs, i64 outputs, const f32 *x_ri, const f32 *dy_ro, f32 *dw_io,
                                 f32 *db_o, f32 *workspace) {
    (void)workspace;
    ST_FOR(o, outputs) db_o[o] = 0;
    ST_FOR(e, inputs * outputs) dw_io[e] = 0;
    for (i64 r = 0; r < rows; ++r) {
        const f32 *dy = dy_ro + r * outputs;
        ST_FOR(o, outputs) db_o[o] += dy[o];
        for (i64 i = 0; i < inputs; ++i) {
            f32 x = x_ri[r * inputs + i];
            ST_FOR(o, outputs) dw_io[i * outputs + o] = fma(x, dy[o], dw_io[i * outputs + o]);
        }
    }
}
ST_EXPORT_HOST(dense_grad_weight)
