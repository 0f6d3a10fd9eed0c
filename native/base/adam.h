// The running means of g and g^2, by which several optimizers step (Kingma, Ba: Adam, 2015).
#pragma once
#include "base/math.h"
#include "base/power.h"

namespace st {
inline namespace ST_ISA {

// m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2, computed as m += (1 - b1) (g - m), v += (1 - b2) (g^2 - v): 1 - b is
// taken in double and then rounded, to 6e-8 of itself, and m and v tend to the means of g and g^2 whatever it is. A b
// rounded to float would be 1e-3 of 1 - b off.
struct Means {
    f32 rest1, rest2, epsilon;
    f32 growth;   // 1 / sqrt(1 - b2^t)

    // factors: b1, b2, epsilon
    ST_MEMBER Means(i64 number, const f64 *factors)
        : rest1(f32(1.0 - factors[0])), rest2(f32(1.0 - factors[1])), epsilon(f32(factors[2])),
          growth(f32(1.0 / sqrt(1.0 - power(factors[1], number)))) {}
    ST_MEMBER void see(f32 g, f32 &m, f32 &v) const {
        m = fma(rest1, g - m, m);
        v = fma(rest2, fma(g, g, -v), v);
    }
    ST_MEMBER f32 spread(f32 v) const { return fma(sqrt(v), growth, epsilon); }   // sqrt(v / (1 - b2^t)) + epsilon
};

}  // namespace ST_ISA
}  // namespace st
