// y = log(1 + e^x) = max(x, 0) + log(1 + e^-|x|); dy/dx = sigmoid(x) (Dugas, Bengio, Bélisle, Nadeau, Garcia:
// Incorporating second-order functional knowledge for better option pricing, 2000).
#pragma once
#include "base/kernel.h"

template <class T>
ST_KERNEL void softplus_forward(i64 n, T *y, const T *x) {
    ST_FOR(i, n) y[i] = (x[i] > T(0) ? x[i] : T(0)) + log1p(exp(-abs(x[i])));
}
ST_EXPORT(softplus_forward, float, double)

template <class T>
ST_KERNEL void softplus_gradient(i64 n, T *dx, const T *dy, const T *x, const T *y) {
    ST_FOR(i, n) dx[i] = dy[i] * sigmoid(x[i]);
}
ST_EXPORT(softplus_gradient, float, double)
