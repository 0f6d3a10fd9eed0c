// v = a v + (1 - a) g^2, p -= rate g / (sqrt(v) + epsilon) (Tieleman, Hinton: Neural networks for machine learning,
// lecture 6.5, 2012).
#pragma once
#include "base/kernel.h"

struct Rmsprop {
    static constexpr int kept = 1, factors = 2;
    f32 rate, rest, epsilon;

    // factors: a, epsilon
    ST_MEMBER Rmsprop(f64 rate, i64, const f64 *factors)
        : rate(f32(rate)), rest(f32(1.0 - factors[0])), epsilon(f32(factors[1])) {}
    ST_MEMBER f32 next(f32 g, f32 p, f32 *v) const {
        v[0] = fma(rest, fma(g, g, -v[0]), v[0]);
        return p - rate * g / (sqrt(v[0]) + epsilon);
    }
};
ST_OPTIMIZER(rmsprop, Rmsprop)
