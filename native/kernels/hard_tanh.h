// y = x between -1 and 1, NaN kept; dy/dx = 1 between them (Collobert: Large scale machine learning, 2004).
#pragma once
#include "base/kernel.h"

template <class T>
ST_KERNEL void hard_tanh_forward(i64 n, T *y, const T *x) {
    ST_FOR(i, n) y[i] = x[i] < T(-1) ? T(-1) : x[i] > T(1) ? T(1) : x[i];
}
ST_EXPORT(hard_tanh_forward, float, double)

template <class T>
ST_KERNEL void hard_tanh_gradient(i64 n, T *dx, const T *dy, const T *x, const T *y) {
    ST_FOR(i, n) dx[i] = x[i] > T(-1) && x[i] < T(1) ? dy[i] : T(0);
}
ST_EXPORT(hard_tanh_gradient, float, double)
