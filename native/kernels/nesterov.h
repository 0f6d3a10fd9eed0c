// u = momentum u + g, p -= rate (g + momentum u): Nesterov's gradient, taken where the momentum leads, in the
// parameters it is taken at (Sutskever et al.: On the importance of initialization and momentum, 2013).
#pragma once
#include "base/kernel.h"

struct Nesterov {
    static constexpr int kept = 1, factors = 1;
    f32 rate, momentum;

    ST_MEMBER Nesterov(f64 rate, i64, const f64 *factors) : rate(f32(rate)), momentum(f32(factors[0])) {}
    ST_MEMBER f32 next(f32 g, f32 p, f32 *u) const {
        u[0] = fma(momentum, u[0], g);
        return p - rate * fma(momentum, u[0], g);
    }
};
ST_OPTIMIZER(nesterov, Nesterov)
