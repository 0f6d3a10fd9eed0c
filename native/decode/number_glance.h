// The usual number of a record that is text, at one glance of 16 characters: what makes decoding fast. Everything else
// goes the long way (number_text.h). x86-64-v2 has the byte shuffle this rests on; elsewhere two words take its place.
#pragma once
#include <bit>

#include "decode/number_text.h"

#if defined(__SSE4_1__) && !defined(ST_PORTABLE)
#include <smmintrin.h>
#define ST_GLANCE_SSE 1
#endif

namespace st {

#if ST_GLANCE_SSE

namespace number_text {

// What stands behind a number of JSON.
struct Comma {
    __m128i operator()(__m128i text) const { return _mm_cmpeq_epi8(text, _mm_set1_epi8(',')); }
};

// 16 characters, one bit each.
struct Glance {
    __m128i digits;   // values; 0 where there is none
    u32 other;        // no digits
    u32 comma;        // or what else ends a number

    template <class Stop>
    Glance(const char *p, const Stop &stop) {
        const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p));
        const __m128i value = _mm_sub_epi8(text, _mm_set1_epi8('0'));
        const __m128i is_other = _mm_cmpeq_epi8(_mm_max_epu8(value, _mm_set1_epi8(10)), value);
        digits = _mm_andnot_si128(is_other, value);
        other = static_cast<u32>(_mm_movemask_epi8(is_other));
        comma = static_cast<u32>(_mm_movemask_epi8(stop(text)));
    }
};

// shuffles[point][end]: moves the characters before `end` to the right, leaving out that at `point` (point == end:
// none).
struct Shuffles {
    alignas(16) u8 at[17][17][16];
    constexpr Shuffles() : at() {
        for (int point = 0; point < 17; ++point)
            for (int end = 0; end < 17; ++end)
                for (int to = 0; to < 16; ++to) {
                    const int straight = to + end - 16, from = straight > point ? straight : straight - (point < end);
                    at[point][end][to] = from < 0 ? 0x80 : static_cast<u8>(from);
                }
    }
};
inline constexpr Shuffles SHUFFLES{};

inline __m128i shuffled(__m128i digits, u32 point, u32 end) {
    return _mm_shuffle_epi8(digits, _mm_load_si128(reinterpret_cast<const __m128i *>(SHUFFLES.at[point][end])));
}

// The value of 16 digits, first one highest.
inline u64 sixteen_digits(__m128i digits) {
    const __m128i pairs = _mm_maddubs_epi16(digits, _mm_set1_epi16(0x010a));               // 10, 1
    const __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32(0x00010064));               // 100, 1
    const __m128i eights = _mm_madd_epi16(_mm_packus_epi32(fours, fours), _mm_set1_epi32(0x00012710));   // 10000, 1
    const u64 both = static_cast<u64>(_mm_cvtsi128_si64(eights));
    return (both & 0xffffffffu) * 100000000u + (both >> 32);
}

struct SignedPowers {
    f64 at[2][16];
    constexpr SignedPowers() : at() {
        for (int i = 0; i < 16; ++i) at[0][i] = POWERS[i], at[1][i] = -POWERS[i];
    }
};
inline constexpr SignedPowers SIGNED_POWERS{};

// Where a number's parts are, seen in the masks of what is no digit and of what is a comma. False: parse_number has to
// look.
struct Spots {
    u32 negative, point, end, fraction;

    [[gnu::always_inline]] bool find(const char *p, u32 other, u32 comma) {
        const u32 stop = comma & (0 - comma),
                  near = other & (stop ^ (stop - 1)) & ~1u;   // what is no digit, up to the comma
        if (!stop) return false;
        negative = other & 1;
        point = end = static_cast<u32>(__builtin_ctz(comma));
        fraction = 0;
        if ((near & (near - 1)) == stop) [[likely]] {
            point = static_cast<u32>(__builtin_ctz(near));
            fraction = end - point - 1;
            if (p[point] != '.' || fraction == 0) return false;
        } else if (near != stop || (negative && p[1] == '0')) {   // -0 is 0, which a division would not give
            return false;
        }
        const u32 from_first = other >> negative;   // bit 0: the first digit, bit 1: the second or the point
        const u32 leading_zero = u32{p[negative] == '0'} & ~(from_first >> 1);
        return ((from_first | leading_zero | (negative & u32{*p != '-'})) & 1) == 0;
    }
};

}  // namespace number_text

// A number with a comma behind it, of up to 15 characters, or of up to 19 digits: what follows it (the comma) and its
// value, exactly rounded; nullptr where parse_number has to look. p may stand at anything, with 48 readable bytes. No
// branch on the sign, nor on how many digits there are: in real data both are random. The comma alone says where to go
// on; whether all before it is a number is found out beside the next one's way. `stop` gives all bits of a character
// that ends a number as a comma does.
template <class Stop = number_text::Comma>
inline const char *parse_at_a_glance(const char *p, f64 &value, const Stop &stop = {}) {
    using namespace number_text;
    const Glance glance(p, stop);
    Spots at;
    if (glance.comma) [[likely]] {
        if (!at.find(p, glance.other, glance.comma)) return nullptr;
        const i64 magnitude = static_cast<i64>(sixteen_digits(shuffled(glance.digits, at.point, at.end)));
        value = static_cast<f64>(magnitude) /
                SIGNED_POWERS.at[at.negative][at.fraction];   // 15 digits are exact: one rounding
        return p + at.end;
    }
    const Glance more(p + 16, stop);
    if (!at.find(p, glance.other | more.other << 16, more.comma << 16)) return nullptr;
    const u32 count = at.point - at.negative + at.fraction;
    if (count > 19 || at.fraction < 2) return nullptr;
    const u32 split = at.end - 16;   // the last 16 characters, and those before; the point lies in one of them
    const u32 left_point = at.point < split ? at.point : split, right_point = at.point < split ? 16 : at.point - split;
    const u64 left = sixteen_digits(shuffled(glance.digits, left_point, split));
    const u64 right = sixteen_digits(shuffled(Glance(p + split, stop).digits, right_point, 16));
    const u64 magnitude = left * WHOLE_POWERS[15 + (right_point == 16)] + right;
    const f64 exact = magnitude ? quotient(magnitude, at.fraction) : 0;
    value = std::bit_cast<f64>(std::bit_cast<u64>(exact) | u64{at.negative} << 63);
    return p + at.end;
}

#else

namespace number_text {

// JSON looks itself at what stands behind a number.
struct Comma {
    bool operator()(char) const { return true; }
};

}  // namespace number_text

// A number of up to 8 digits that `stop` lets end there: what follows it and its value, exactly rounded; nullptr where
// parse_number has to look.
template <class Stop = number_text::Comma>
inline const char *parse_at_a_glance(const char *p, f64 &value, const Stop &stop = {}) {
    using namespace number_text;
    const bool negative = *p == '-';
    const char *const first = p + negative;
    const u32 whole = leading_digits(load64(first));
    if (whole - 1 > 6 || (*first == '0' && whole > 1)) return nullptr;
    const char *end = first + whole;
    u32 fraction = 0;
    u64 word = load64(first);
    if (*end == '.') {
        fraction = leading_digits(load64(end + 1));
        if (fraction == 0 || whole + fraction > 8) return nullptr;
        const u64 keep = (u64{1} << (8 * whole)) - 1;   // the digits before the point; those behind move down over it
        word = (word & keep) | (load64(first + 1) & ~keep);
        end += 1 + fraction;
    }
    if ((*end | 0x20) == 'e' || is_digit(*end) || !stop(*end)) return nullptr;
    const f64 magnitude = static_cast<f64>(eight_digits(word << (64 - 8 * (whole + fraction)))) / POWERS[fraction];
    value = negative && (magnitude != 0 || fraction) ? -magnitude : magnitude;
    return end;
}

#endif

}  // namespace st
