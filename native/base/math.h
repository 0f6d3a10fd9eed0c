// Our own elementary functions: branch-free, so that a loop over them becomes vector code; explicit fma and no libm, so
// that the bits are the same on every instruction set. Errors are tested: at most 2 ulp in float and 4 in double.
#pragma once
#include "base/lane.h"

namespace st {
inline namespace ST_ISA {

#if ST_CUDA
ST_INLINE f32 fma(f32 a, f32 b, f32 c) { return ::fmaf(a, b, c); }
ST_INLINE f64 fma(f64 a, f64 b, f64 c) { return ::fma(a, b, c); }
ST_INLINE f32 sqrt(f32 x) { return ::sqrtf(x); }   // correctly rounded: --prec-sqrt is NVRTC's default
ST_INLINE f64 sqrt(f64 x) { return ::sqrt(x); }
ST_INLINE i32 bits_of(f32 x) { return __float_as_int(x); }
ST_INLINE i64 bits_of(f64 x) { return __double_as_longlong(x); }
ST_INLINE f32 from_bits(i32 bits) { return __int_as_float(bits); }
ST_INLINE f64 from_bits(i64 bits) { return __longlong_as_double(bits); }
#else
ST_INLINE f32 fma(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
ST_INLINE f64 fma(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
ST_INLINE f32 sqrt(f32 x) { return __builtin_sqrtf(x); }
ST_INLINE f64 sqrt(f64 x) { return __builtin_sqrt(x); }
ST_INLINE i32 bits_of(f32 x) { return __builtin_bit_cast(i32, x); }
ST_INLINE i64 bits_of(f64 x) { return __builtin_bit_cast(i64, x); }
ST_INLINE f32 from_bits(i32 bits) { return __builtin_bit_cast(f32, bits); }
ST_INLINE f64 from_bits(i64 bits) { return __builtin_bit_cast(f64, bits); }
#endif

ST_INLINE f32 abs(f32 x) { return from_bits(bits_of(x) & 0x7fffffff); }
ST_INLINE f64 abs(f64 x) { return from_bits(bits_of(x) & i64(0x7fffffffffffffffll)); }
ST_INLINE f32 copysign(f32 x, f32 sign) { return from_bits(bits_of(abs(x)) | (bits_of(sign) & i32(0x80000000))); }
ST_INLINE f64 copysign(f64 x, f64 sign) {
    return from_bits(bits_of(abs(x)) | (bits_of(sign) & i64(0x8000000000000000ull)));
}

// 1 for an infinity or a NaN, read from the exponent.
ST_INLINE i32 not_finite(f32 x) { return (bits_of(x) & 0x7f800000) == 0x7f800000; }
ST_INLINE i32 not_finite(f64 x) { return (bits_of(x) & 0x7ff0000000000000ll) == 0x7ff0000000000000ll; }

// What differs between float and double below. IEEE 754: exponent bias and mantissa bits; `round` = 1.5 * 2^mantissa
// rounds to an integer when added; ln2_high has so few bits that n * ln2_high is exact for every exponent n.
template <class T>
struct Real;
template <>
struct Real<f32> {
    using Int = i32;
    using Bits = u32;
    static constexpr int mantissa = 23, bias = 127;
    static constexpr f32 round = 12582912.0f, log2e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    static constexpr f32 exp_largest = 89.0f, exp_smallest = -104.0f;
    static constexpr f32 tanh_largest = 10.0f;   // tanh is 1 - 1 ulp / 2 or more from here on
    static constexpr f32 smallest_normal = 1.17549435e-38f, subnormal_scale = 8388608.0f;
    static constexpr Int sqrt_half = 0x3f3504f3, fraction = 0x007fffff, one = 0x3f800000;
};
template <>
struct Real<f64> {
    using Int = i64;
    using Bits = u64;
    static constexpr int mantissa = 52, bias = 1023;
    static constexpr f64 round = 6755399441055744.0, log2e = 1.4426950408889634;
    static constexpr f64 ln2_high = 6.93147180369123816490e-01, ln2_low = 1.90821492927058770002e-10;
    static constexpr f64 exp_largest = 710.0, exp_smallest = -746.0;
    static constexpr f64 tanh_largest = 20.0;
    static constexpr f64 smallest_normal = 2.2250738585072014e-308, subnormal_scale = 4503599627370496.0;
    static constexpr Int sqrt_half = 0x3fe6a09e667f3bcdll, fraction = 0x000fffffffffffffll, one = 0x3ff0000000000000ll;
};

// (e^r - 1) / r - 1 for |r| <= ln(2) / 2, Taylor's series: the first term left out is below 1/10 ulp of 1.
ST_INLINE f32 exp_tail(f32 r) {
    f32 p = 1.0f / 5040;
    p = fma(p, r, 1.0f / 720);
    p = fma(p, r, 1.0f / 120);
    p = fma(p, r, 1.0f / 24);
    p = fma(p, r, 1.0f / 6);
    return r * fma(p, r, 0.5f);
}
ST_INLINE f64 exp_tail(f64 r) {
    f64 p = 1.0 / 6227020800.0;
    p = fma(p, r, 1.0 / 479001600.0);
    p = fma(p, r, 1.0 / 39916800.0);
    p = fma(p, r, 1.0 / 3628800.0);
    p = fma(p, r, 1.0 / 362880.0);
    p = fma(p, r, 1.0 / 40320.0);
    p = fma(p, r, 1.0 / 5040.0);
    p = fma(p, r, 1.0 / 720.0);
    p = fma(p, r, 1.0 / 120.0);
    p = fma(p, r, 1.0 / 24.0);
    p = fma(p, r, 1.0 / 6.0);
    return r * fma(p, r, 0.5);
}

// x = n ln 2 + r with |r| <= ln(2) / 2. A NaN comes out as r = NaN.
template <class T>
struct Reduced {
    T r;
    typename Real<T>::Int n;
};
template <class T>
ST_INLINE Reduced<T> reduce(T x) {
    using R = Real<T>;
    T clamped = x > R::exp_largest ? R::exp_largest : x;
    clamped = clamped < R::exp_smallest ? R::exp_smallest : clamped;
    T shifted = fma(clamped, R::log2e, R::round), whole = shifted - R::round;
    T r = fma(whole, -R::ln2_low, fma(whole, -R::ln2_high, clamped));
    return {r, bits_of(shifted) - bits_of(R::round)};
}

// 2^n for a normal result.
template <class T>
ST_INLINE T power_of_two(typename Real<T>::Int n) {
    using R = Real<T>;
    return from_bits(static_cast<typename R::Int>((n + R::bias) << R::mantissa));
}

template <class T>
ST_INLINE T exp(T x) {
    Reduced<T> d = reduce(x);
    T p = fma(d.r, exp_tail(d.r), d.r) + T(1);
    auto half = d.n >> 1;   // in two factors: the result may be subnormal or infinite
    return p * power_of_two<T>(half) * power_of_two<T>(d.n - half);
}

// e^x - 1 without loss for small x; x at most what exp takes without becoming infinite.
template <class T>
ST_INLINE T expm1(T x) {
    Reduced<T> d = reduce(x);
    T p = fma(d.r, exp_tail(d.r), d.r), scale = power_of_two<T>(d.n);
    return fma(scale, p, scale - T(1));
}

// e^x - 1 for x <= 0; from x = -40 on it is -1 in float and double.
template <class T>
ST_INLINE T expm1_below(T x) {
    T held = x < T(-40) ? T(-40) : x;
    return expm1(held > T(0) ? T(0) : held);
}

// 2 atanh(s) / s - 2 over s^2 for |s| <= 3 - sqrt(8), the series of atanh cut below 1/10 ulp.
ST_INLINE f32 log_tail(f32 t) {
    f32 p = 2.0f / 9;
    p = fma(p, t, 2.0f / 7);
    p = fma(p, t, 2.0f / 5);
    return fma(p, t, 2.0f / 3);
}
ST_INLINE f64 log_tail(f64 t) {
    f64 p = 2.0 / 21;
    p = fma(p, t, 2.0 / 19);
    p = fma(p, t, 2.0 / 17);
    p = fma(p, t, 2.0 / 15);
    p = fma(p, t, 2.0 / 13);
    p = fma(p, t, 2.0 / 11);
    p = fma(p, t, 2.0 / 9);
    p = fma(p, t, 2.0 / 7);
    p = fma(p, t, 2.0 / 5);
    return fma(p, t, 2.0 / 3);
}

// x = 2^e m with m in [sqrt(1/2), sqrt(2)); log x = e ln 2 + 2 atanh((m - 1) / (m + 1)).
template <class T>
ST_INLINE T log(T x) {
    using R = Real<T>;
    using Int = typename R::Int;
    bool small = x < R::smallest_normal;
    T scaled = small ? x * R::subnormal_scale : x;
    Int bits = bits_of(scaled) - R::sqrt_half;
    // e + bias above 2^mantissa, in whose last bits it is: below AVX-512 there is no vector of i64 that become f64
    constexpr Int whole = Int(R::bias + R::mantissa) << R::mantissa;
    constexpr auto shift = static_cast<typename R::Bits>(R::bias) << R::mantissa;   // a NaN goes beyond Int
    Int above = static_cast<Int>((static_cast<typename R::Bits>(bits) + shift) >> R::mantissa) | whole;
    T e = from_bits(above) - (small ? from_bits(whole) + T(R::bias + R::mantissa) : from_bits(whole) + T(R::bias));
    T f = from_bits(static_cast<Int>((bits & R::fraction) + R::sqrt_half)) - T(1);   // m - 1, exact
    T s = f / (f + T(2)), t = s * s, tail = t * log_tail(t), half_square = T(0.5) * f * f;
    // log m = f - (f^2 / 2 - s (f^2 / 2 + tail)): fdlibm's arrangement keeps f exact
    T y = fma(e, R::ln2_high, f - (half_square - fma(s, half_square + tail, e * R::ln2_low)));
    T infinity = from_bits(static_cast<Int>(Int(2 * R::bias + 1) << R::mantissa));
    y = x == infinity ? infinity : y;
    y = x == T(0) ? -infinity : y;
    return x < T(0) || x != x ? infinity - infinity : y;
}

// log(1 + u) for u >= 0: the rounding of 1 + u is put right to first order.
template <class T>
ST_INLINE T log1p(T u) {
    T w = T(1) + u;
    return log(w) + (u - (w - T(1))) / w;
}

template <class T>
ST_INLINE T tanh(T x) {
    T a = abs(x), m = expm1(T(2) * (a > Real<T>::tanh_largest ? Real<T>::tanh_largest : a));
    return copysign(m / (m + T(2)), x);
}

template <class T>
ST_INLINE T sigmoid(T x) {
    return T(1) / (T(1) + exp(-x));
}

}  // namespace ST_ISA
}  // namespace st
