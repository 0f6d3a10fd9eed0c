// m = b1 m + (1 - b1) g, u = max(b2 u, |g| + epsilon), p -= rate m / (1 - b1^t) / u (Kingma, Ba: 2015, section 7.1).
#pragma once
#include "base/kernel.h"

struct Adamax {
    static constexpr int kept = 2, factors = 3;
    f32 rate, rest, beta, epsilon;

    // factors: beta1, beta2, epsilon
    ST_MEMBER Adamax(f64 rate, i64 number, const f64 *factors)
        : rate(f32(rate / (1.0 - power(factors[0], number)))), rest(f32(1.0 - factors[0])), beta(f32(factors[1])),
          epsilon(f32(factors[2])) {}
    ST_MEMBER f32 next(f32 g, f32 p, f32 *kept) const {
        f32 &m = kept[0], &u = kept[1], old = beta * u, size = abs(g) + epsilon;
        m = fma(rest, g - m, m);
        u = old > size ? old : size;   // a NaN stays one
        return p - rate * m / u;
    }
};
ST_OPTIMIZER(adamax, Adamax)
