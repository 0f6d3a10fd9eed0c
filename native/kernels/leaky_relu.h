// y = x where x >= 0, else x / 100; NaN kept. dx = dy or dy / 100 (Maas, Hannun, Ng: Rectifier nonlinearities improve
// neural network acoustic models, 2013).
#pragma once
#include "base/kernel.h"

template <class T>
ST_KERNEL void leaky_relu_forward(i64 n, T *y, const T *x) {
    ST_FOR(i, n) y[i] = x[i] < T(0) ? T(0.01) * x[i] : x[i];
}
ST_EXPORT(leaky_relu_forward, float, double)

template <class T>
ST_KERNEL void leaky_relu_gradient(i64 n, T *dx, const T *dy, const T *x, const T *y) {
    ST_FOR(i, n) dx[i] = y[i] > T(0) ? dy[i] : T(0.01) * dy[i];
}
ST_EXPORT(leaky_relu_gradient, float, double)
