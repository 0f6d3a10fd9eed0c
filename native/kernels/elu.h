// y = x where x > 0, else e^x - 1; dy/dx = 1, else y + 1 (Clevert, Unterthiner, Hochreiter: Fast and accurate deep
// network learning by exponential linear units, 2015).
#pragma once
#include "base/kernel.h"

template <class T>
ST_KERNEL void elu_forward(i64 n, T *y, const T *x) {
    ST_FOR(i, n) {
        T v = x[i];
        y[i] = v > T(0) ? v : expm1_below(v);
    }
}
ST_EXPORT(elu_forward, float, double)

template <class T>
ST_KERNEL void elu_gradient(i64 n, T *dx, const T *dy, const T *x, const T *y) {
    ST_FOR(i, n) dx[i] = y[i] > T(0) ? dy[i] : dy[i] * (y[i] + T(1));
}
ST_EXPORT(elu_gradient, float, double)
