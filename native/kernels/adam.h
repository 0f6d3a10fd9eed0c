// Adam (Kingma, Ba: 2015): with the running means m of g and v of g^2 (base/adam.h),
// p -= rate m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon).
#pragma once
#include "base/kernel.h"

struct Adam {
    static constexpr int kept = 2, factors = 3;
    Means means;
    f32 rate;

    ST_MEMBER Adam(f64 rate, i64 number, const f64 *factors)
        : means(number, factors), rate(f32(rate / (1.0 - power(factors[0], number)))) {}
    ST_MEMBER f32 next(f32 g, f32 p, f32 *kept) const {
        means.see(g, kept[0], kept[1]);
        return p - rate * kept[0] / means.spread(kept[1]);
    }
};
ST_OPTIMIZER(adam, Adam)
