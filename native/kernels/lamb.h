// LAMB (You et al.: Large batch optimization for deep learning, 2020): with Adam's step and the decay,
// r = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon) + decay p, p -= rate r |p| / |r|, the norms over each
// parameter; where one of them is 0, their ratio is 1. Of a table, whose norm no step knows, the ratio is 1.
#pragma once
#include "base/kernel.h"

struct Lamb {
    static constexpr int kept = 2, factors = 4;
    Means means;
    f32 rate, growth, decay;

    // factors: b1, b2, epsilon, decay
    ST_MEMBER Lamb(f64 rate, i64 number, const f64 *factors)
        : means(number, factors), rate(f32(rate)), growth(f32(1.0 / (1.0 - power(factors[0], number)))),
          decay(f32(factors[3])) {}
    ST_MEMBER f32 direction(f32 p, f32 m, f32 v) const { return fma(decay, p, growth * m / means.spread(v)); }
    ST_MEMBER f32 next(f32 g, f32 p, f32 *kept) const {
        means.see(g, kept[0], kept[1]);
        return p - rate * direction(p, kept[0], kept[1]);
    }
};

// A stretch is one parameter.
ST_KERNEL void lamb(i64 n, i64 stretches, StepBlock *step, const f64 *settings_sk, const f32 *scale_s, const f32 *g_n,
                    f32 *p_n, f32 *m_n, f32 *v_n, f32 *) {
    if (!(step->weight_sum > 0)) return;
    constexpr i64 width = update_columns + Lamb::factors;
    ST_ROWS(s, stretches) {
        const f64 *settings = settings_sk + s * width;
        const Shaping shaping(step, settings, scale_s ? scale_s + s : nullptr);
        const Lamb formula(shaping.rate, step->number, settings + update_columns);
        const i64 first = s ? i64(settings[-width]) : 0, count = i64(settings[0]) - first;
        const f32 *g = g_n + first;
        f32 *p = p_n + first, *m = m_n + first, *v = v_n + first;
        ST_LANES(i, count) {
            formula.means.see(shaping.gradient(g[i], p[i]), m[i], v[i]);
            p[i] = shaping.parameter(p[i]);
        }
        f64 size = sqrt(sum<f64>(count, [&](i64 i) { return f64(p[i]) * f64(p[i]); }));
        f64 way = sqrt(sum<f64>(count, [&](i64 i) {
            f64 r = formula.direction(p[i], m[i], v[i]);
            return r * r;
        }));
        f32 rate = f32(shaping.rate * (size > 0 && way > 0 ? size / way : 1.0));
        i32 bad = 0;
        ST_LANES(i, count) {
            p[i] -= rate * formula.direction(p[i], m[i], v[i]);
            bad |= not_finite(p[i]) | not_finite(m[i]) | not_finite(v[i]);
        }
        if (bad) step->not_finite = 1;
    }
}
ST_EXPORT_UPDATE(lamb)
ST_OPTIMIZER_ROWS(lamb, Lamb)
