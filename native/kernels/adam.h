// Adam (Kingma, Ba: 2015): m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2,
// p -= learning_rate m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon).
// Computed as m += (1 - b1) (g - m), v += (1 - b2) (g^2 - v): 1 - b is taken in double and then rounded, to 6e-8 of
// itself, and m and v tend to the means of g and g^2 whatever it is. A b rounded to float would be 1e-3 of 1 - b off.
// Nothing where the batch had no weight; flags a parameter or moment that is not finite.
#pragma once
#include "base/kernel.h"

struct AdamFactors {
    f32 rate, growth, rest1, rest2, epsilon;
};

ST_INLINE AdamFactors adam_factors(const StepBlock *step, f64 beta1, f64 beta2, f64 epsilon) {
    f32 rate = static_cast<f32>(f64(step->learning_rate) / (1.0 - step->beta1_power));
    f32 growth = static_cast<f32>(1.0 / sqrt(1.0 - step->beta2_power));
    return {rate, growth, static_cast<f32>(1.0 - beta1), static_cast<f32>(1.0 - beta2), static_cast<f32>(epsilon)};
}

ST_INLINE i32 adam_update(AdamFactors f, f32 g, f32 *p, f32 *m, f32 *v) {
    f32 first = fma(f.rest1, g - *m, *m), second = fma(f.rest2, fma(g, g, -*v), *v);
    f32 next = *p - f.rate * first / fma(sqrt(second), f.growth, f.epsilon);
    *m = first;
    *v = second;
    *p = next;
    return not_finite(next) | not_finite(first) | not_finite(second);
}

ST_KERNEL void adam(i64 n, StepBlock *step, const f32 *g, f32 *p, f32 *m, f32 *v, f64 beta1, f64 beta2,
                    f64 epsilon) {
    if (!(step->weight_sum > 0)) return;
    AdamFactors factors = adam_factors(step, beta1, beta2, epsilon);
    i32 bad = 0;
    ST_FOR(i, n) bad |= adam_update(factors, g[i], p + i, m + i, v + i);
    if (bad) step->not_finite = 1;
}
ST_EXPORT(adam)

// The same for the rows of a table that the batch touched: those that lead (embedding.h); others keep their moments.
ST_KERNEL void adam_rows(i64 rows, i64 entries, i64 columns, i64 column, i64 buckets, i64 dim,
                         StepBlock *step, const i32 *ends_r, const i32 *categories_ec, const i32 *lead_e,
                         const f64 *g_ed, f32 *p_bd, f32 *m_bd, f32 *v_bd, f64 beta1, f64 beta2, f64 epsilon) {
    if (!(step->weight_sum > 0)) return;
    AdamFactors factors = adam_factors(step, beta1, beta2, epsilon);
    ST_ROWS(e, entry_count(rows, ends_r)) {
        if (lead_e[e] != e) continue;
        i64 at = embedding_bucket(categories_ec, e, columns, column, buckets) * dim;
        i32 bad = 0;
        ST_LANES(d, dim) {
            f32 g = static_cast<f32>(g_ed[e * dim + d]);
            bad |= adam_update(factors, g, p_bd + at + d, m_bd + at + d, v_bd + at + d);
        }
        if (bad) step->not_finite = 1;
    }
}
ST_EXPORT(adam_rows)
