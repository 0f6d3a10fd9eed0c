// One float vector of the build's instruction set: 16 lanes with AVX-512, 8 with AVX2, else 4. Host only. The fused
// multiply-add is correctly rounded everywhere, also where the processor has none: every build gives the same bits.
#pragma once
#include <utility>

#include "base/math.h"

// Unrolled before GCC can turn a loop over an array of vectors into memset or memcpy, which would keep it in memory.

namespace st {
inline namespace ST_ISA {

#if defined(__AVX512F__)
constexpr int vector_lanes = 16;
#elif defined(__AVX2__) && defined(__FMA__)
constexpr int vector_lanes = 8;
#else
constexpr int vector_lanes = 4;
#endif

typedef f32 Vector __attribute__((vector_size(4 * vector_lanes)));
typedef f32 VectorAnywhere __attribute__((vector_size(4 * vector_lanes), aligned(4), may_alias));
typedef f32 HalfVector __attribute__((vector_size(2 * vector_lanes)));
typedef f64 Doubles __attribute__((vector_size(4 * vector_lanes)));   // half as many lanes
typedef f32 Quad __attribute__((vector_size(16)));
typedef f32 QuadAnywhere __attribute__((vector_size(16), aligned(4), may_alias));

ST_INLINE Vector load(const f32 *p) { return *reinterpret_cast<const VectorAnywhere *>(p); }
ST_INLINE Quad load_quad(const f32 *p) { return *reinterpret_cast<const QuadAnywhere *>(p); }
ST_INLINE void store(f32 *p, Vector v) { *reinterpret_cast<VectorAnywhere *>(p) = v; }
ST_INLINE void store(f64 *p, Doubles v) { __builtin_memcpy(p, &v, sizeof v); }
ST_INLINE Doubles load(const f64 *p) {
    Doubles v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}
ST_INLINE Vector broadcast(f32 x) { return x - Vector{}; }   // x - 0 is x for every x, -0 too

#if defined(__AVX512F__)
ST_INLINE Vector fma(Vector a, Vector b, Vector c) {
    return __builtin_ia32_vfmaddps512_mask(a, b, c, 0xffff, 4);   // 4: the current rounding mode
}
#elif defined(__AVX2__) && defined(__FMA__)
ST_INLINE Vector fma(Vector a, Vector b, Vector c) { return __builtin_ia32_vfmaddps256(a, b, c); }
#elif defined(__x86_64__)
typedef f64 QuadDouble __attribute__((vector_size(32)));
typedef i64 QuadBits __attribute__((vector_size(32)));

// a * b is exact in double; the sum is rounded to odd there (what it lost is found by Knuth's TwoSum), so that rounding
// it once more, to float, is correct: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008.
ST_INLINE Vector fma(Vector a, Vector b, Vector c) {
    QuadDouble product = __builtin_convertvector(a, QuadDouble) * __builtin_convertvector(b, QuadDouble);
    QuadDouble start = __builtin_convertvector(c, QuadDouble);
    QuadDouble sum = product + start, back = sum - product;
    QuadDouble lost = (product - (sum - back)) + (start - back);
    QuadBits bits = (QuadBits)sum;
    QuadBits even_but_inexact = ((lost < 0) | (lost > 0)) & ((bits & 1) == 0);   // no if lost is NaN: sum infinite
    QuadBits away_from_zero = (lost > 0) == (sum > 0);
    bits += even_but_inexact & (away_from_zero ? QuadBits{} + 1 : QuadBits{} - 1);
    return __builtin_convertvector((QuadDouble)bits, Quad);
}
#else
ST_INLINE Vector fma(Vector a, Vector b, Vector c) {
    Vector sum;
    for (int lane = 0; lane < vector_lanes; ++lane) sum[lane] = __builtin_fmaf(a[lane], b[lane], c[lane]);
    return sum;
}
#endif

ST_INLINE Doubles fma(Doubles a, Doubles b, Doubles c) {
#if defined(__AVX512F__)
    return __builtin_ia32_vfmaddpd512_mask(a, b, c, 0xff, 4);
#elif defined(__AVX2__) && defined(__FMA__)
    return __builtin_ia32_vfmaddpd256(a, b, c);
#else
    Doubles sum;
    for (int lane = 0; lane < vector_lanes / 2; ++lane) sum[lane] = __builtin_fma(a[lane], b[lane], c[lane]);
    return sum;
#endif
}

// The first `count` lanes, 1 to all; the other lanes are 0, and the memory behind is not touched.
#if defined(__AVX512F__)
ST_INLINE unsigned short first_lanes(int count) { return static_cast<unsigned short>((1u << count) - 1); }
ST_INLINE Vector load_first(const f32 *p, int count) {
    return __builtin_ia32_loadups512_mask(p, Vector{}, first_lanes(count));
}
ST_INLINE Doubles load_first(const f64 *p, int count) {
    return __builtin_ia32_loadupd512_mask(p, Doubles{}, static_cast<unsigned char>(first_lanes(count)));
}
ST_INLINE void store_first(f32 *p, Vector v, int count) { __builtin_ia32_storeups512_mask(p, v, first_lanes(count)); }
#elif defined(__AVX2__) && defined(__FMA__)
typedef i32 LaneBits __attribute__((vector_size(32)));
ST_INLINE LaneBits first_lanes(int count) { return LaneBits{0, 1, 2, 3, 4, 5, 6, 7} < count; }
ST_INLINE Vector load_first(const f32 *p, int count) {
    return __builtin_ia32_maskloadps256(reinterpret_cast<const Vector *>(p), first_lanes(count));
}
typedef long long WideLaneBits __attribute__((vector_size(32)));
ST_INLINE Doubles load_first(const f64 *p, int count) {
    return __builtin_ia32_maskloadpd256(reinterpret_cast<const Doubles *>(p), WideLaneBits{0, 1, 2, 3} < count);
}
ST_INLINE void store_first(f32 *p, Vector v, int count) {
    __builtin_ia32_maskstoreps256(reinterpret_cast<Vector *>(p), first_lanes(count), v);
}
#else
ST_INLINE Vector load_first(const f32 *p, int count) {
    Vector v{};
    for (int lane = 0; lane < count; ++lane) v[lane] = p[lane];
    return v;
}
ST_INLINE Doubles load_first(const f64 *p, int count) {
    Doubles v{};
    for (int lane = 0; lane < count; ++lane) v[lane] = p[lane];
    return v;
}
ST_INLINE void store_first(f32 *p, Vector v, int count) {
    for (int lane = 0; lane < count; ++lane) p[lane] = v[lane];
}
#endif

ST_INLINE Vector load_lanes(const f32 *p, int count) { return count == vector_lanes ? load(p) : load_first(p, count); }
ST_INLINE Doubles load_lanes(const f64 *p, int count) {
    return count == vector_lanes / 2 ? load(p) : load_first(p, count);
}
ST_INLINE void store_lanes(f32 *p, Vector v, int count) {
    if (count == vector_lanes)
        store(p, v);
    else
        store_first(p, v, count);
}

// Whole halves at once; of __builtin_convertvector GCC makes two conversions and what puts them together.
#if defined(__AVX512F__)
ST_INLINE Doubles widen(HalfVector v) { return __builtin_ia32_cvtps2pd512_mask(v, Doubles{}, 0xff, 4); }
ST_INLINE HalfVector narrow(Doubles v) { return __builtin_ia32_cvtpd2ps512_mask(v, HalfVector{}, 0xff, 4); }
#else
ST_INLINE Doubles widen(HalfVector v) { return __builtin_convertvector(v, Doubles); }
ST_INLINE HalfVector narrow(Doubles v) { return __builtin_convertvector(v, HalfVector); }
#endif

template <int... lane>
ST_INLINE void to_doubles(Vector v, Doubles halves[2], std::integer_sequence<int, lane...>) {
    HalfVector low = __builtin_shufflevector(v, v, lane...);
    HalfVector high = __builtin_shufflevector(v, v, (lane + vector_lanes / 2)...);
    halves[0] = widen(low);
    halves[1] = widen(high);
}
ST_INLINE void to_doubles(Vector v, Doubles halves[2]) {
    to_doubles(v, halves, std::make_integer_sequence<int, vector_lanes / 2>{});
}

ST_INLINE void to_doubles(Doubles v, Doubles whole[1]) { whole[0] = v; }

// A vector of T, and how many it holds.
template <class T>
struct LanesFor {
    typedef Vector type;
};
template <>
struct LanesFor<f64> {
    typedef Doubles type;
};
template <class T>
using LanesOf = typename LanesFor<T>::type;
template <class T>
constexpr int lanes_of = vector_lanes * 4 / sizeof(T);

template <int... lane>
ST_INLINE Vector to_floats(const Doubles halves[2], std::integer_sequence<int, lane...>) {
    HalfVector low = narrow(halves[0]);
    HalfVector high = narrow(halves[1]);
    return __builtin_shufflevector(low, high, lane...);
}
ST_INLINE Vector to_floats(const Doubles halves[2]) {
    return to_floats(halves, std::make_integer_sequence<int, vector_lanes>{});
}

// Each quad of lanes of the four vectors as the rows of a 4 x 4 matrix, transposed.
template <int... lane>
ST_INLINE void transpose_quads(Vector v[4], std::integer_sequence<int, lane...>) {
    constexpr int other = vector_lanes;   // lanes of the second operand count from here
    // in every quad: a0 b0 a1 b1, and a2 b2 a3 b3
    Vector ab_low = __builtin_shufflevector(v[0], v[1], ((lane & ~3) + (lane >> 1 & 1) + (lane & 1) * other)...);
    Vector ab_high = __builtin_shufflevector(v[0], v[1], ((lane & ~3) + 2 + (lane >> 1 & 1) + (lane & 1) * other)...);
    Vector cd_low = __builtin_shufflevector(v[2], v[3], ((lane & ~3) + (lane >> 1 & 1) + (lane & 1) * other)...);
    Vector cd_high = __builtin_shufflevector(v[2], v[3], ((lane & ~3) + 2 + (lane >> 1 & 1) + (lane & 1) * other)...);
    // in every quad: a0 b0 c0 d0, and so on
    v[0] = __builtin_shufflevector(ab_low, cd_low, ((lane & ~3) + (lane & 1) + (lane >> 1 & 1) * other)...);
    v[1] = __builtin_shufflevector(ab_low, cd_low, ((lane & ~3) + 2 + (lane & 1) + (lane >> 1 & 1) * other)...);
    v[2] = __builtin_shufflevector(ab_high, cd_high, ((lane & ~3) + (lane & 1) + (lane >> 1 & 1) * other)...);
    v[3] = __builtin_shufflevector(ab_high, cd_high, ((lane & ~3) + 2 + (lane & 1) + (lane >> 1 & 1) * other)...);
}

// Four columns of as many rows as there are lanes: lane r of v[k] = p[r * stride + k].
ST_INLINE void load_columns(const f32 *p, i64 stride, Vector v[4]) {
    ST_UNROLL for (int j = 0; j < 4; ++j) {
#if defined(__AVX512F__)
        v[j] = __builtin_ia32_broadcastf32x4_512(load_quad(p + j * stride), Vector{}, 0xffff);
        v[j] = __builtin_ia32_broadcastf32x4_512(load_quad(p + (4 + j) * stride), v[j], 0x00f0);
        v[j] = __builtin_ia32_broadcastf32x4_512(load_quad(p + (8 + j) * stride), v[j], 0x0f00);
        v[j] = __builtin_ia32_broadcastf32x4_512(load_quad(p + (12 + j) * stride), v[j], 0xf000);
#elif defined(__AVX2__) && defined(__FMA__)
        v[j] = __builtin_shufflevector(load_quad(p + j * stride), load_quad(p + (4 + j) * stride),
                                       0, 1, 2, 3, 4, 5, 6, 7);
#else
        v[j] = load_quad(p + j * stride);
#endif
    }
    transpose_quads(v, std::make_integer_sequence<int, vector_lanes>{});
}

// One column of as many rows as there are lanes.
ST_INLINE Vector load_column(const f32 *p, i64 stride) {
    Vector v;
    for (int lane = 0; lane < vector_lanes; ++lane) v[lane] = p[lane * stride];
    return v;
}

}  // namespace ST_ISA
}  // namespace st
