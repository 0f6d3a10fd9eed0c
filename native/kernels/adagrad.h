// n += g^2, p -= rate g / (sqrt(n) + epsilon) (Duchi, Hazan, Singer: Adaptive subgradient methods, 2011).
#pragma once
#include "base/kernel.h"

struct Adagrad {
    static constexpr int kept = 1, factors = 2;
    f32 rate, initial, epsilon;

    // factors: what n begins with, epsilon
    ST_MEMBER Adagrad(f64 rate, i64, const f64 *factors)
        : rate(f32(rate)), initial(f32(factors[0])), epsilon(f32(factors[1])) {}
    ST_MEMBER f32 next(f32 g, f32 p, f32 *n) const {
        n[0] = fma(g, g, n[0]);
        return p - rate * g / (sqrt(n[0] + initial) + epsilon);
    }
};
ST_OPTIMIZER(adagrad, Adagrad)
