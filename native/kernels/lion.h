// p -= rate sign(b1 m + (1 - b1) g), m = b2 m + (1 - b2) g (Chen et al.: Symbolic discovery of optimization
// algorithms, 2023).
#pragma once
#include "base/kernel.h"

struct Lion {
    static constexpr int kept = 1, factors = 2;
    f32 rate, rest1, rest2;

    // factors: beta1, beta2
    ST_MEMBER Lion(f64 rate, i64, const f64 *factors)
        : rate(f32(rate)), rest1(f32(1.0 - factors[0])), rest2(f32(1.0 - factors[1])) {}
    ST_MEMBER f32 next(f32 g, f32 p, f32 *m) const {
        f32 ahead = fma(rest1, g - m[0], m[0]);
        m[0] = fma(rest2, g - m[0], m[0]);
        return p - (ahead > 0 ? rate : ahead < 0 ? -rate : 0.0f * ahead);   // a NaN stays one
    }
};
ST_OPTIMIZER(lion, Lion)
