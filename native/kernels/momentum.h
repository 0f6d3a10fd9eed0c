// u = momentum u + g, p -= rate u (Polyak, 1964).
#pragma once
#include "base/kernel.h"

struct Momentum {
    static constexpr int kept = 1, factors = 1;
    f32 rate, momentum;

    ST_MEMBER Momentum(f64 rate, i64, const f64 *factors) : rate(f32(rate)), momentum(f32(factors[0])) {}
    ST_MEMBER f32 next(f32 g, f32 p, f32 *u) const {
        u[0] = momentum * u[0] + g;
        return p - rate * u[0];
    }
};
ST_OPTIMIZER(momentum, Momentum)
