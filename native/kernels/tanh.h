// y = tanh(x); dx = dy (1 - y^2).
#pragma once
#include "base/kernel.h"

template <class T>
ST_KERNEL void tanh_forward(i64 n, T *y, const T *x) {
    ST_FOR(i, n) y[i] = tanh(x[i]);
}
ST_EXPORT(tanh_forward, float, double)

template <class T>
ST_KERNEL void tanh_gradient(i64 n, T *dx, const T *dy, const T *x, const T *y) {
    (void)x;
    ST_FOR(i, n) dx[i] = dy[i] * (T(1) - y[i] * y[i]);
}
ST_EXPORT(tanh_gradient, float, double)
