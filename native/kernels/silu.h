// y = x s with s = sigmoid(x); dy/dx = s (1 + x (1 - s)) (Elfwing, Uchibe, Doya: Sigmoid-weighted linear units, 2017).
#pragma once
#include "base/kernel.h"

template <class T>
ST_KERNEL void silu_forward(i64 n, T *y, const T *x) {
    ST_FOR(i, n) y[i] = x[i] * sigmoid(x[i]);
}
ST_EXPORT(silu_forward, float, double)

template <class T>
ST_KERNEL void silu_gradient(i64 n, T *dx, const T *dy, const T *x, const T *y) {
    ST_FOR(i, n) {
        T v = x[i] < T(-1000) ? T(-1000) : x[i] > T(1000) ? T(1000) : x[i];   // outside of it 0 or 1
        T s = sigmoid(v);
        dx[i] = dy[i] * s * fma(v, T(1) - s, T(1));
    }
}
ST_EXPORT(silu_gradient, float, double)
