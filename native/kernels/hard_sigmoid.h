// y = x / 6 + 1 / 2 between 0 and 1, NaN kept; dy/dx = 1 / 6 between -3 and 3 (Howard et al.: Searching for
// MobileNetV3, 2019).
#pragma once
#include "base/kernel.h"

template <class T>
ST_KERNEL void hard_sigmoid_forward(i64 n, T *y, const T *x) {
    ST_FOR(i, n) {
        T v = (x[i] + T(3)) / T(6);
        y[i] = v < T(0) ? T(0) : v > T(1) ? T(1) : v;
    }
}
ST_EXPORT(hard_sigmoid_forward, float, double)

template <class T>
ST_KERNEL void hard_sigmoid_gradient(i64 n, T *dx, const T *dy, const T *x, const T *y) {
    ST_FOR(i, n) dx[i] = x[i] > T(-3) && x[i] < T(3) ? dy[i] / T(6) : T(0);
}
ST_EXPORT(hard_sigmoid_gradient, float, double)
