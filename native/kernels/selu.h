// y = scale x where x > 0, else scale alpha (e^x - 1); dy/dx = scale, else y + scale alpha (Klambauer, Unterthiner,
// Mayr, Hochreiter: Self-normalizing neural networks, 2017, whose fixed point at mean 0 and variance 1 gives both).
#pragma once
#include "base/kernel.h"

template <class T>
constexpr T selu_scale = T(1.0507009873554804934193349852946);
template <class T>
constexpr T selu_floor = T(1.7580993408473768599402175208123);   // scale alpha, with alpha = 1.6732632423543772

template <class T>
ST_KERNEL void selu_forward(i64 n, T *y, const T *x) {
    ST_FOR(i, n) {
        T v = x[i];
        y[i] = v > T(0) ? selu_scale<T> * v : selu_floor<T> * expm1_below(v);
    }
}
ST_EXPORT(selu_forward, float, double)

template <class T>
ST_KERNEL void selu_gradient(i64 n, T *dx, const T *dy, const T *x, const T *y) {
    ST_FOR(i, n) dx[i] = y[i] > T(0) ? dy[i] * selu_scale<T> : dy[i] * (y[i] + selu_floor<T>);
}
ST_EXPORT(selu_gradient, float, double)
