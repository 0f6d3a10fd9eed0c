// Adam whose step is by the largest v so far (Reddi, Kale, Kumar: On the convergence of Adam and beyond, 2018).
#pragma once
#include "base/kernel.h"

struct Amsgrad {
    static constexpr int kept = 3, factors = 3;
    Means means;
    f32 rate;

    ST_MEMBER Amsgrad(f64 rate, i64 number, const f64 *factors)
        : means(number, factors), rate(f32(rate / (1.0 - power(factors[0], number)))) {}
    ST_MEMBER f32 next(f32 g, f32 p, f32 *kept) const {
        means.see(g, kept[0], kept[1]);
        f32 &most = kept[2];
        most = larger(most, kept[1]);   // the second of two that count as 0: it is no subnormal number
        return p - rate * kept[0] / means.spread(most);
    }
};
ST_OPTIMIZER(amsgrad, Amsgrad)
