// y = x tanh(log(1 + e^x)) = x n / (n + 2) with e = e^x and n = e (e + 2); from x = 20 on y = x in float and double.
// dy/dx = w + x (1 - w^2) s with w = n / (n + 2) and s = sigmoid(x) (Misra: Mish, 2019).
#pragma once
#include "base/kernel.h"

template <class T>
ST_KERNEL void mish_forward(i64 n, T *y, const T *x) {
    ST_FOR(i, n) {
        T v = x[i], e = exp(v < T(20) ? v : T(20)), m = e * (e + T(2));
        y[i] = v >= T(20) ? v : v * m / (m + T(2));
    }
}
ST_EXPORT(mish_forward, float, double)

template <class T>
ST_KERNEL void mish_gradient(i64 n, T *dx, const T *dy, const T *x, const T *y) {
    (void)y;
    ST_FOR(i, n) {
        T v = x[i], e = exp(v < T(20) ? v : T(20)), m = e * (e + T(2)), w = m / (m + T(2)), s = e / (e + T(1));
        dx[i] = dy[i] * (v >= T(20) ? T(1) : w + v * (T(1) - w * w) * s);
    }
}
ST_EXPORT(mish_gradient, float, double)
