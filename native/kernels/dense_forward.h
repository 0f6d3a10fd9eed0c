// y_ro = x_ri w_io + bias_o, then the activation (0 none, 1 relu: y <= 0 becomes 0, a NaN stays): each element one fma
// chain in ascending i from bias. By base/product.h.
#pragma once
#include "base/kernel.h"

#if !ST_CUDA   // there it is cuBLAS

// One output: the chains run along the rows of x, so rows lie in the lanes. Of `count` vectors of rows at once, since
// the next step of a chain waits for the last.
template <int count>
ST_INLINE void dense_forward_rows(i64 inputs, const f32 *x_ri, const f32 *w_i, f32 bias, bool relu, f32 *y_r) {
    Vector sum[count];
    ST_UNROLL for (int k = 0; k < count; ++k) sum[k] = broadcast(bias);
    i64 i = 0;
    for (; i + 4 <= inputs; i += 4)
        ST_UNROLL for (int k = 0; k < count; ++k) {
            Vector v[4];
            load_columns(x_ri + k * vector_lanes * inputs + i, inputs, v);
            ST_UNROLL for (int j = 0; j < 4; ++j) sum[k] = fma(v[j], broadcast(w_i[i + j]), sum[k]);
        }
    for (; i < inputs; ++i)
        ST_UNROLL for (int k = 0; k < count; ++k)
            sum[k] = fma(load_column(x_ri + k * vector_lanes * inputs + i, inputs), broadcast(w_i[i]), sum[k]);
    ST_UNROLL for (int k = 0; k < count; ++k) {
        if (relu) sum[k] = sum[k] <= 0 ? Vector{} : sum[k];
        store(y_r + k * vector_lanes, sum[k]);
    }
}

static void dense_forward_one(i64 rows, i64 inputs, const f32 *x_ri, const f32 *w_i, f32 bias, bool relu, f32 *y_r) {
    constexpr int at_once = 2;
    i64 r = 0;
    auto take = [&](auto count) {
        constexpr i64 taken = count() * vector_lanes;
        for (; r + taken <= rows; r += taken)
            dense_forward_rows<count()>(inputs, x_ri + r * inputs, w_i, bias, relu, y_r + r);
    };
    take(std::integral_constant<int, at_once>{});
    take(std::integral_constant<int, 1>{});
    for (; r < rows; ++r) {
        f32 sum = bias;
        for (i64 i = 0; i < inputs; ++i) sum = fma(x_ri[r * inputs + i], w_i[i], sum);
        y_r[r] = relu && sum <= 0 ? 0 : sum;
    }
}

ST_KERNEL void dense_forward(i64 rows, i64 inputs, i64 outputs, const f32 *x_ri, const f32 *w_io, const f32 *bias_o,
                             i32 activation, f32 *y_ro) {
    if (outputs == 1)
        dense_forward_one(rows, inputs, x_ri, w_io, bias_o[0], activation == 1, y_ro);
    else
        multiply(Product{rows, inputs, outputs, x_ri, inputs, 1, w_io, outputs, 1, bias_o, y_ro,
                         activation == 1 ? Finish::relu : Finish::none, nullptr});
}
ST_EXPORT_HOST(dense_forward)
#endif
