// A JSON number's text → double, exactly rounded. Up to 19 digits by whole words; what is not exact that way by
// from_chars.
#pragma once
#include <bit>
#include <charconv>
#include <limits>

#include "decode/key_table.h"

namespace st {

struct NumberText {
    f64 value;            // of an integer never -0.0
    u64 magnitude;        // of an integer that fits 64 bits
    bool negative;
    bool is_integer;      // neither fraction nor exponent
    bool fits64;
};

namespace number_text {

constexpr f64 POWERS[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                            1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr u64 WHOLE_POWERS[20] = {1,
                                  10,
                                  100,
                                  1000,
                                  10000,
                                  100000,
                                  1000000,
                                  10000000,
                                  100000000,
                                  1000000000,
                                  10000000000,
                                  100000000000,
                                  1000000000000,
                                  10000000000000,
                                  100000000000000,
                                  1000000000000000,
                                  10000000000000000,
                                  100000000000000000,
                                  1000000000000000000,
                                  10000000000000000000u};

inline bool is_digit(char c) { return static_cast<u8>(c - '0') <= 9; }

// How many of the word's first 8 characters are digits.
inline u32 leading_digits(u64 word) {
    const u64 other = ((word & 0xf0f0f0f0f0f0f0f0u) ^ 0x3030303030303030u) |
                      (((word + 0x0606060606060606u) & 0xf0f0f0f0f0f0f0f0u) ^ 0x3030303030303030u);
    return other ? static_cast<u32>(__builtin_ctzll(other)) >> 3 : 8;
}

// The value of 8 digits, first character lowest (Johnny Lee, Daniel Lemire: three multiplications).
inline u64 eight_digits(u64 word) {
    word = (word & 0x0f0f0f0f0f0f0f0fu) * 2561 >> 8;
    word = (word & 0x00ff00ff00ff00ffu) * 6553601 >> 16;
    return (word & 0x0000ffff0000ffffu) * 42949672960001u >> 32;
}

// Reads digits at p on to `magnitude` (which wraps beyond 19 digits); returns the first other character.
inline const char *digits(const char *p, u64 &magnitude) {
    for (;;) {
        const u64 word = load64(p);
        const u32 n = leading_digits(word);
        if (n == 0) return p;
        magnitude = magnitude * WHOLE_POWERS[n] + eight_digits(word << (64 - 8 * n));
        p += n;
        if (n < 8) return p;
    }
}

// magnitude / 10^power, exactly rounded, for magnitude > 0 and power <= 19: a quotient of 63 or 64 bits and whether
// anything is left tell how to round to 53. Integers alone, so any compiler and machine gives the same.
inline f64 quotient(u64 magnitude, u32 power) {
    const u64 divisor = WHOLE_POWERS[power];
    const int up = __builtin_clzll(magnitude), down = __builtin_clzll(divisor);
    const unsigned __int128 dividend = static_cast<unsigned __int128>(magnitude << up) << 63;
    const u64 by = divisor << down;   // both have their highest bit: the quotient lies between 2^62 and 2^64
    u64 whole, left;
#if defined(__x86_64__)   // the compiler would call a function that asks first whether the quotient fits: it does
    __asm__("divq %4"
            : "=a"(whole), "=d"(left)
            : "0"(static_cast<u64>(dividend)), "1"(static_cast<u64>(dividend >> 64)), "r"(by)
            : "cc");
#else
    whole = static_cast<u64>(dividend / by);
    left = static_cast<u64>(dividend) - whole * by;
#endif
    const int bits = 64 - __builtin_clzll(whole), drop = bits - 53;
    const u64 kept = whole >> drop, half = u64{1} << (drop - 1), rest = (whole & (2 * half - 1)) | (left != 0);
    const u64 rounded = kept + (rest + (kept & 1) > half);   // to even on a tie; without a branch, being random
    // 2^(drop - 63 - up + down) times `rounded`, which has 53 bits, or is 2^53
    const u64 scale = static_cast<u64>(1023 + drop - 63 - up + down) << 52;
    return static_cast<f64>(static_cast<i64>(rounded)) * std::bit_cast<f64>(scale);
}

// Of a number outside double's range: is it too large (not too small)? Its first digit but 0 and the exponent tell.
inline bool is_large(const char *p, i64 exponent) {
    const char *whole_end = p;
    while (is_digit(*whole_end)) ++whole_end;
    const char *leading = p;
    while (*leading == '0' || *leading == '.') ++leading;
    return whole_end - leading - (leading < whole_end) + exponent > 0;
}

}  // namespace number_text

// p stands at '-' or a digit and has 16 readable bytes behind the text. Returns the first character behind the number,
// nullptr if it is not one.
inline const char *parse_number(const char *p, NumberText &number) {
    using namespace number_text;
    number.negative = *p == '-';
    p += number.negative;
    u64 magnitude = 0;
    const char *const first = p;
    if (*p == '0') {
        if (is_digit(*++p)) return nullptr;
    } else {
        p = digits(p, magnitude);
        if (p == first) return nullptr;
    }
    i64 digit_count = p - first, exponent = 0, written = 0;
    number.is_integer = true;
    if (*p == '.') {
        const char *const fraction = ++p;
        p = digits(p, magnitude);
        if (p == fraction) return nullptr;
        exponent = fraction - p;
        digit_count -= exponent;
        number.is_integer = false;
    }
    if ((*p | 0x20) == 'e') {
        const bool minus = p[1] == '-';
        p += 1 + (minus || p[1] == '+');
        if (!is_digit(*p)) return nullptr;
        for (; is_digit(*p); ++p) written = written < 100000 ? written * 10 + (*p - '0') : written;
        if (minus) written = -written;
        exponent += written;
        number.is_integer = false;
    }
    number.magnitude = magnitude;
    number.fits64 = digit_count <= 19;
    if (number.fits64 && magnitude <= u64{1} << 53 && exponent >= -22 && exponent <= 22) [[likely]] {
        const f64 whole = static_cast<f64>(magnitude);   // exact, so one rounding remains (Clinger 1990)
        const f64 value = exponent < 0 ? whole / POWERS[-exponent] : whole * POWERS[exponent];
        number.value = number.negative && (magnitude || !number.is_integer) ? -value : value;
        return p;
    }
    if (number.fits64 && exponent < 0 && exponent >= -19 && magnitude) {
        const f64 value = quotient(magnitude, static_cast<u32>(-exponent));
        number.value = number.negative ? -value : value;
        return p;
    }
    if (number.is_integer && digit_count == 20)
        number.fits64 = std::from_chars(first, p, number.magnitude).ec == std::errc{};
    f64 value = 0;
    if (std::from_chars(first, p, value).ec == std::errc::result_out_of_range)
        value = is_large(first, written) ? std::numeric_limits<f64>::infinity() : 0;
    number.value = number.negative ? -value : value;
    return p;
}

}  // namespace st
