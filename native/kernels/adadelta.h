// v = a v + (1 - a) g^2, d = g sqrt(u + epsilon) / sqrt(v + epsilon), u = a u + (1 - a) d^2, p -= rate d (Zeiler:
// ADADELTA, 2012).
#pragma once
#include "base/kernel.h"

struct Adadelta {
    static constexpr int kept = 2, factors = 2;
    f32 rate, rest, epsilon;

    // factors: a, epsilon
    ST_MEMBER Adadelta(f64 rate, i64, const f64 *factors)
        : rate(f32(rate)), rest(f32(1.0 - factors[0])), epsilon(f32(factors[1])) {}
    ST_MEMBER f32 next(f32 g, f32 p, f32 *kept) const {
        f32 &v = kept[0], &u = kept[1];
        v = fma(rest, fma(g, g, -v), v);
        f32 d = g * (sqrt(u + epsilon) / sqrt(v + epsilon));
        u = fma(rest, fma(d, d, -u), u);
        return p - rate * d;
    }
};
ST_OPTIMIZER(adadelta, Adadelta)
