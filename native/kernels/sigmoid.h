// y = 1 / (1 + e^-x); dx = dy y (1 - y).
#pragma once
#include "base/kernel.h"

template <class T>
ST_KERNEL void sigmoid_forward(i64 n, T *y, const T *x) {
    ST_FOR(i, n) y[i] = sigmoid(x[i]);
}
ST_EXPORT(sigmoid_forward, float, double)

template <class T>
ST_KERNEL void sigmoid_gradient(i64 n, T *dx, const T *dy, const T *x, const T *y) {
    (void)x;
    ST_FOR(i, n) dx[i] = dy[i] * y[i] * (T(1) - y[i]);
}
ST_EXPORT(sigmoid_gradient, float, double)
