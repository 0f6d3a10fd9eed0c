// Elementary functions of doubles in plain multiplications and additions: the same bits on every instruction set, with
// no libm and no fma, which the decoder's instruction set has not. Errors below 2 ulp but for powers.
#pragma once
#include <bit>
#include <cmath>
#include <limits>

#include "base/types.h"

namespace st {

// Of a normal number above 0 times 2^lower, and without a branch: x = 2^e m with m in [sqrt(1/2), sqrt(2)), and the
// series of log(1 + f) in f / (2 + f) (fdlibm, Sun, 1993).
inline f64 plain_log_of(f64 x, i64 lower) {
    const i64 bits = std::bit_cast<i64>(x) - 0x3fe6a09e667f3bcdll;
    // e + 1024 behind 2^52's exponent: its last digits, exactly
    const u64 e = (static_cast<u64>(bits) + (u64{1024} << 52)) >> 52;
    const f64 k = std::bit_cast<f64>(e | 0x4330000000000000ull) - (4503599627370496.0 + 1024) + static_cast<f64>(lower);
    const f64 f = std::bit_cast<f64>((bits & 0x000fffffffffffffll) + 0x3fe6a09e667f3bcdll) - 1;
    const f64 s = f / (2 + f), z = s * s, w = z * z, half = 0.5 * f * f;
    const f64 odd = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    const f64 tail = w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01);
    const f64 even = z * (6.666666666666735130e-01 + w * (2.857142874366239149e-01 + tail));
    return k * 6.93147180369123816490e-01 -
           ((half - (s * (half + (odd + even)) + k * 1.90821492927058770002e-10)) - f);
}

inline f64 plain_log(f64 x) {
    if (!(x > 0)) return std::numeric_limits<f64>::quiet_NaN();
    if (x > std::numeric_limits<f64>::max()) return x;
    if (x < 2.2250738585072014e-308) return plain_log_of(x * 18014398509481984.0, -54);
    return plain_log_of(x, 0);
}

// The rounding of 1 + x is put right to first order.
inline f64 plain_log1p(f64 x) {
    const f64 w = 1 + x;   // never subnormal
    const f64 log = plain_log_of(w, 0) + (x - (w - 1)) / w;
    return (w > 0) & (w <= std::numeric_limits<f64>::max()) ? log : std::numeric_limits<f64>::quiet_NaN();
}

// x = n ln 2 + r with |r| <= ln(2) / 2, and a rational function of r (fdlibm).
inline f64 plain_exp(f64 x) {
    if (x != x) return x;
    if (x > 709.782712893383973096) return std::numeric_limits<f64>::infinity();
    if (x < -745.13321910194110842) return 0;
    const f64 n = std::floor(x * 1.44269504088896338700 + 0.5);
    const f64 high = x - n * 6.93147180369123816490e-01, low = n * 1.90821492927058770002e-10, r = high - low;
    const f64 t = r * r;
    const f64 c = r - t * (1.66666666666666019037e-01 +
                           t * (-2.77777777770155933842e-03 +
                                t * (6.61375632143793436117e-05 +
                                     t * (-1.65339022054652515390e-06 + t * 4.13813679705723846039e-08))));
    const f64 y = 1 - ((low - r * c / (2 - c)) - high);
    const i64 whole = static_cast<i64>(n), half = whole / 2;   // in two factors: the result may be subnormal
    return y * std::bit_cast<f64>((half + 1023) << 52) * std::bit_cast<f64>((whole - half + 1023) << 52);
}

// NaN where it is no real number. Whole exponents up to 1000 by squaring, 0.5 by the root; others lose about as many
// bits as exponent * log(x) has before the point.
inline f64 plain_power(f64 x, f64 exponent) {
    if (exponent == 0.5) return std::sqrt(x);
    if (std::abs(exponent) <= 1000 && exponent == std::floor(exponent)) {
        f64 y = 1, square = x;
        for (u32 left = static_cast<u32>(std::abs(exponent)); left; left >>= 1, square *= square)
            if (left & 1) y *= square;
        return exponent < 0 ? 1 / y : y;
    }
    if (x == 0) return exponent > 0 ? 0 : std::numeric_limits<f64>::quiet_NaN();
    return plain_exp(exponent * plain_log(x));
}

}  // namespace st
