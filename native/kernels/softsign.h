// y = x / (1 + |x|); dy/dx = 1 / (1 + |x|)^2 (Turian, Bergstra, Bengio: Quadratic features and deep architectures for
// chunking, 2009).
#pragma once
#include "base/kernel.h"

template <class T>
ST_KERNEL void softsign_forward(i64 n, T *y, const T *x) {
    ST_FOR(i, n) y[i] = x[i] / (T(1) + abs(x[i]));
}
ST_EXPORT(softsign_forward, float, double)

template <class T>
ST_KERNEL void softsign_gradient(i64 n, T *dx, const T *dy, const T *x, const T *y) {
    ST_FOR(i, n) {
        T r = T(1) / (T(1) + abs(x[i]));
        dx[i] = dy[i] * r * r;
    }
}
ST_EXPORT(softsign_gradient, float, double)
