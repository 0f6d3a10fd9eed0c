// p -= rate g.
#pragma once
#include "base/kernel.h"

struct Sgd {
    static constexpr int kept = 0, factors = 0;
    f32 rate;

    ST_MEMBER Sgd(f64 rate, i64, const f64 *) : rate(f32(rate)) {}
    ST_MEMBER f32 next(f32 g, f32 p, f32 *) const { return p - rate * g; }
};
ST_OPTIMIZER(sgd, Sgd)
