// y = x between 0 and 6, NaN kept; dy/dx = 1 between them (Krizhevsky: Convolutional deep belief networks on CIFAR-10,
// 2010).
#pragma once
#include "base/kernel.h"

template <class T>
ST_KERNEL void relu6_forward(i64 n, T *y, const T *x) {
    ST_FOR(i, n) y[i] = x[i] < T(0) ? T(0) : x[i] > T(6) ? T(6) : x[i];
}
ST_EXPORT(relu6_forward, float, double)

template <class T>
ST_KERNEL void relu6_gradient(i64 n, T *dx, const T *dy, const T *x, const T *y) {
    ST_FOR(i, n) dx[i] = y[i] > T(0) && y[i] < T(6) ? dy[i] : T(0);
}
ST_EXPORT(relu6_gradient, float, double)
