// dx_ri = dy_ro w_io^T, 0 where mask_ri (the output of the relu below; may be null) is not above 0: each element one fma
// chain in ascending o from 0.
#pragma once
#include "base/kernel.h"

ST_KERNEL void dense_grad_input(i64 rows, i64 inputs, i64 outputs, const f32 *dy_ro, const f32 *w_io,
                                const f32 *mask_ri, f32 *dx_ri) {
    ST_ROWS(r, rows) {
        for (i64 i = 0; i < inputs; ++i) {
            f32 sum = 0;
            for (i64 o = 0; o < outputs; ++o) sum = fma(dy_ro[r * outputs + o], w_io[i * outputs + o], sum);
            dx_ri[r * inputs + i] = mask_ri == nullptr || mask_ri[r * inputs + i] > 0 ? sum : 0;
        }
    }
}
ST_EXPORT_HOST(dense_grad_input)
