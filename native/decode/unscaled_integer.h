// Decimals as bytes: Avro's logical type, and Java's BigDecimal, which Kafka Connect writes as base64 in JSON.
#pragma once
#include <optional>

#include "decode/base64.h"
#include "decode/decimal_text.h"

namespace st {

constexpr u64 MOST_DECIMAL_BYTES = 32;   // 76 digits

// A big-endian two's complement integer: its decimal digits, and its value over 10^scale.
class UnscaledInteger {
  public:
    UnscaledInteger(const char *bytes, u64 size) : negative_(size && (bytes[0] & 0x80)) {
        for (u64 i = 0; i < MOST_DECIMAL_BYTES; ++i) {
            const u8 byte = i < size ? static_cast<u8>(bytes[size - 1 - i]) : negative_ ? 0xff : 0;
            limbs_[i / 4] |= u32{byte} << 8 * (i % 4);
        }
        u64 carry = 1;
        for (u32 &limb : limbs_) {
            if (!negative_) break;
            carry += static_cast<u32>(~limb);
            limb = static_cast<u32>(carry);
            carry >>= 32;
        }
    }

    bool negative() const { return negative_; }
    bool is_small() const {
        u32 high = 0;
        for (u32 i = 2; i < LIMBS; ++i) high |= limbs_[i];
        return high == 0;
    }
    u64 magnitude() const { return limbs_[0] | u64{limbs_[1]} << 32; }

    // Over 10^scale, as the nearest double.
    f64 over(i32 scale) const {
        static constexpr f64 POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                         1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
        const bool has_power = scale >= 0 && scale < static_cast<i32>(std::size(POWERS));
        if (is_small() && has_power && magnitude() < u64{1} << 53) {   // both exact: one rounding
            const f64 quotient = static_cast<f64>(magnitude()) / POWERS[scale];
            return negative_ && quotient != 0 ? -quotient : quotient;
        }
        f64 rounded = 0;
        parse_decimal(digits() + "e" + std::to_string(-scale), rounded);
        return rounded;
    }

    std::string digits() const {
        std::string reversed;
        u32 rest[LIMBS];
        std::copy(limbs_, limbs_ + LIMBS, rest);
        for (bool more = true; more;) {
            u64 remainder = 0;
            more = false;
            for (u32 i = LIMBS; i-- > 0;) {
                remainder = remainder << 32 | rest[i];
                rest[i] = static_cast<u32>(remainder / 1'000'000'000);
                remainder %= 1'000'000'000;
                more |= rest[i] != 0;
            }
            for (u32 place = 0; place < 9 && (more || remainder); ++place, remainder /= 10)
                reversed += static_cast<char>('0' + remainder % 10);
        }
        if (reversed.empty()) reversed = "0";
        if (negative_) reversed += '-';
        return {reversed.rbegin(), reversed.rend()};
    }

  private:
    static constexpr u32 LIMBS = MOST_DECIMAL_BYTES / 4;
    bool negative_;
    u32 limbs_[LIMBS] = {};   // of the magnitude, the lowest first
};

// The scale that "connect_decimal:2" gives a column's texts; none of another `parse`.
inline std::optional<i32> connect_scale(std::string_view parse) {
    constexpr std::string_view NAME = "connect_decimal:";
    i32 scale = 0;
    if (!parse.starts_with(NAME)) return std::nullopt;
    parse.remove_prefix(NAME.size());
    std::from_chars(parse.data(), parse.data() + parse.size(), scale);
    return scale;
}

// None of what is no base64, of no bytes or of too many.
inline std::optional<UnscaledInteger> parse_unscaled(std::string_view base64) {
    std::string bytes;
    if (base64.size() > (MOST_DECIMAL_BYTES + 2) / 3 * 4 || !from_base64(base64, bytes)) return std::nullopt;
    if (bytes.empty() || bytes.size() > MOST_DECIMAL_BYTES) return std::nullopt;
    return UnscaledInteger(bytes.data(), bytes.size());
}

// Whether the decimal is a whole number; `digits`: its decimal text then.
inline bool whole_unscaled(std::string_view base64, i32 scale, std::string &digits) {
    const auto found = parse_unscaled(base64);
    if (!found) return false;
    digits = found->digits();
    if (digits == "0") return true;
    if (scale < 0) digits.append(static_cast<u64>(-scale), '0');
    if (scale <= 0) return true;
    const u64 fraction = static_cast<u64>(scale);
    if (digits.size() <= fraction || digits.find_last_not_of('0') >= digits.size() - fraction) return false;
    digits.resize(digits.size() - fraction);
    return true;
}

constexpr const char *NO_UNSCALED = ", no base64 of 1 to 32 bytes";   // a reason

}  // namespace st
