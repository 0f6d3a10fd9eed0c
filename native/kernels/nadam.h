// Adam with Nesterov's momentum (Dozat: Incorporating Nesterov momentum into Adam, 2016): with
// mu_t = b1 (1 - 0.96^(t decay) / 2) and their product M_t,
// p -= rate ((1 - mu_t) g / (1 - M_t) + mu_(t+1) m / (1 - M_(t+1))) / (sqrt(v / (1 - b2^t)) + epsilon).
#pragma once
#include "base/kernel.h"

struct Nadam {
    static constexpr int kept = 2, factors = 4;
    Means means;
    f32 of_gradient, of_mean;

    // factors: b1, b2, epsilon, 0.96^decay
    ST_MEMBER Nadam(f64 rate, i64 number, const f64 *factors) : means(number, factors) {
        const f64 beta = factors[0], base = factors[3];
        f64 product = 1, share = base;   // 0.96^(t decay)
        for (i64 t = 1; t < number && product > 1e-20; ++t, share *= base) product *= beta * (1 - 0.5 * share);
        share = power(base, number);
        const f64 mu = beta * (1 - 0.5 * share), next_mu = beta * (1 - 0.5 * share * base);
        product *= mu;
        of_gradient = f32(rate * (1 - mu) / (1 - product));
        of_mean = f32(rate * next_mu / (1 - product * next_mu));
    }
    ST_MEMBER f32 next(f32 g, f32 p, f32 *kept) const {
        means.see(g, kept[0], kept[1]);
        return p - fma(of_mean, kept[0], of_gradient * g) / means.spread(kept[1]);
    }
};
ST_OPTIMIZER(nadam, Nadam)
