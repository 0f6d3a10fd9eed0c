// dx_ri = dy_ro w_io^T, 0 where mask_ri (the output of the relu below; may be null) is at or below 0: each element one
// fma chain in ascending o from 0. By base/product.h; w is turned while it is packed.
#pragma once
#include "base/kernel.h"

#if !ST_CUDA   // there it is cuBLAS

// One output: an outer product; + 0 because a chain from 0 never ends in -0.
ST_INLINE void dense_grad_input_one(i64 rows, i64 inputs, const f32 *dy_r, const f32 *w_i, const f32 *mask_ri,
                                    f32 *dx_ri) {
    for (i64 r = 0; r < rows; ++r) {
        Vector dy = broadcast(dy_r[r]);
        for (i64 i = 0, at = r * inputs; i < inputs; i += vector_lanes, at += vector_lanes) {
            int count = static_cast<int>(smaller<i64>(inputs - i, vector_lanes));
            Vector dx = dy * load_lanes(w_i + i, count) + 0.0f;
            if (mask_ri) dx = load_lanes(mask_ri + at, count) <= 0 ? Vector{} : dx;
            store_lanes(dx_ri + at, dx, count);
        }
    }
}

ST_KERNEL void dense_grad_input(i64 rows, i64 inputs, i64 outputs, const f32 *dy_ro, const f32 *w_io,
                                const f32 *mask_ri, f32 *dx_ri) {
    if (outputs == 1)
        dense_grad_input_one(rows, inputs, dy_ro, w_io, mask_ri, dx_ri);
    else
        multiply(Product{rows, outputs, inputs, dy_ro, outputs, 1, w_io, 1, outputs, nullptr, dx_ri,
                         mask_ri ? Finish::mask : Finish::none, mask_ri});
}
ST_EXPORT_HOST(dense_grad_input)
#endif
