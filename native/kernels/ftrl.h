// FTRL-proximal (McMahan et al.: Ad click prediction, 2013): with s = (sqrt(n + g^2) - sqrt(n)) / rate,
// z += g - s p, n += g^2, p = 0 where |z| <= l1, else -(z - sign(z) l1) / ((beta + sqrt(n)) / rate + l2).
// z begins as what gives the parameter's start.
#pragma once
#include "base/kernel.h"

struct Ftrl {
    static constexpr int kept = 2, factors = 3;
    f32 faster, beta, l1, l2;   // faster: 1 / rate

    // factors: beta, l1, l2
    ST_MEMBER Ftrl(f64 rate, i64, const f64 *factors)
        : faster(f32(1.0 / rate)), beta(f32(factors[0])), l1(f32(factors[1])), l2(f32(factors[2])) {}
    ST_MEMBER f32 next(f32 g, f32 p, f32 *kept) const {
        f32 &z = kept[0], &n = kept[1], before = sqrt(n), slope = p > 0 ? l1 : p < 0 ? -l1 : 0.0f;
        if (n == 0) z = -fma(p, fma(beta, faster, l2), slope);
        n = fma(g, g, n);
        f32 root = sqrt(n);
        z += fma(-(root - before) * faster, p, g);
        f32 beyond = z > l1 ? z - l1 : z < -l1 ? z + l1 : 0.0f * z;   // a NaN stays one
        return -beyond / fma(beta + root, faster, l2);
    }
};
ST_OPTIMIZER(ftrl, Ftrl)
