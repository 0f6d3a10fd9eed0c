// y = max(x, 0), NaN kept; dx = dy where y > 0. The dense kernels have it built in; this is for what else feeds a relu.
#pragma once
#include "base/kernel.h"

template <class T>
ST_KERNEL void relu_forward(i64 n, T *y, const T *x) {
    ST_FOR(i, n) y[i] = x[i] < T(0) ? T(0) : x[i];
}
ST_EXPORT(relu_forward, float, double)

template <class T>
ST_KERNEL void relu_gradient(i64 n, T *dx, const T *dy, const T *x, const T *y) {
    (void)x;
    ST_FOR(i, n) dx[i] = y[i] > T(0) ? dy[i] : T(0);
}
ST_EXPORT(relu_gradient, float, double)
