// What a dense layer needs beside the plain product where cuBLAS does that (CUDA); the host kernels have it built in.
#pragma once
#include "base/kernel.h"

// y_ro += bias_o, then the activation (0 none, 1 relu; a NaN stays).
ST_KERNEL void dense_finish(i64 rows, i64 outputs, const f32 *bias_o, i32 activation, f32 *y_ro) {
    ST_FOR(e, rows * outputs) {
        f32 y = y_ro[e] + bias_o[e % outputs];
        y_ro[e] = activation == 1 && y < 0 ? 0.0f : y;
    }
}
ST_EXPORT(dense_finish)

// dx = 0 where the relu's output is not above 0.
ST_KERNEL void dense_finish_mask(i64 n, const f32 *mask, f32 *dx) {
    ST_FOR(i, n) dx[i] = mask[i] > 0 ? dx[i] : 0.0f;
}
ST_EXPORT(dense_finish_mask)
