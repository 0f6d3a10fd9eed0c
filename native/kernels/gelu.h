// y = x s with s = sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3): the tanh form, (1 + tanh u) / 2 = sigmoid(2 u).
// dy/dx = s + x s (1 - s) 2 du/dx (Hendrycks, Gimpel: Gaussian error linear units, 2016).
#pragma once
#include "base/kernel.h"

template <class T>
constexpr T gelu_linear = T(1.5957691216057308);   // 2 sqrt(2 / pi)
template <class T>
constexpr T gelu_cubic = T(0.07135481627260025);   // that times 0.044715

template <class T>
ST_KERNEL void gelu_forward(i64 n, T *y, const T *x) {
    ST_FOR(i, n) {
        T v = x[i];
        y[i] = v * sigmoid(v * fma(gelu_cubic<T>, v * v, gelu_linear<T>));
    }
}
ST_EXPORT(gelu_forward, float, double)

template <class T>
ST_KERNEL void gelu_gradient(i64 n, T *dx, const T *dy, const T *x, const T *y) {
    ST_FOR(i, n) {
        T v = x[i] < T(-20) ? T(-20) : x[i] > T(20) ? T(20) : x[i];   // outside of it 0 or 1
        T s = sigmoid(v * fma(gelu_cubic<T>, v * v, gelu_linear<T>));
        dx[i] = dy[i] * fma(v * s * (T(1) - s), fma(T(3) * gelu_cubic<T>, v * v, gelu_linear<T>), s);
    }
}
ST_EXPORT(gelu_gradient, float, double)
