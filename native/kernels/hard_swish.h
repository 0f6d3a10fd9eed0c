// y = x (x + 3) / 6 between -3 and 3, below 0, above x, NaN kept; dy/dx = (2 x + 3) / 6, 0, 1 (Howard et al.: Searching
// for MobileNetV3, 2019).
#pragma once
#include "base/kernel.h"

template <class T>
ST_KERNEL void hard_swish_forward(i64 n, T *y, const T *x) {
    ST_FOR(i, n) {
        T v = x[i];
        y[i] = v <= T(-3) ? T(0) : v >= T(3) ? v : v * (v + T(3)) / T(6);
    }
}
ST_EXPORT(hard_swish_forward, float, double)

template <class T>
ST_KERNEL void hard_swish_gradient(i64 n, T *dx, const T *dy, const T *x, const T *y) {
    ST_FOR(i, n) {
        T v = x[i];
        dx[i] = v <= T(-3) ? T(0) : v >= T(3) ? dy[i] : dy[i] * (v + v + T(3)) / T(6);
    }
}
ST_EXPORT(hard_swish_gradient, float, double)
