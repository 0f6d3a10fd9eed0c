// Cells of Avro's logical types whose bytes are no number yet: decimals and UUIDs.
#pragma once
#include "decode/decimal_text.h"
#include "decode/row_writer.h"

namespace st {

constexpr u64 MOST_DECIMAL_BYTES = 32;   // 76 digits

// A big-endian two's complement integer as decimal digits; whether it is below 2^64, and what it is then.
class AvroInteger {
  public:
    AvroInteger(const char *bytes, u64 size) : negative_(size && (bytes[0] & 0x80)) {
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

// The integer over 10^scale, as the nearest double; without a scale the integer itself.
inline void put_decimal(RowWriter &writer, u32 column, const char *bytes, u64 size, u32 scale) {
    static constexpr f64 POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                     1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (size > MOST_DECIMAL_BYTES)
        return writer.wrong(column, "a decimal of " + std::to_string(size) + " bytes");
    const AvroInteger value(bytes, size);
    const bool small = value.is_small();
    if (small && scale == 0) return writer.integer(column, value.magnitude(), value.negative());
    if (small && scale < std::size(POWERS) && value.magnitude() < u64{1} << 53) {   // both exact: one rounding
        const f64 quotient = static_cast<f64>(value.magnitude()) / POWERS[scale];
        return writer.number(column, value.negative() ? -quotient : quotient);
    }
    const std::string digits = value.digits();
    f64 rounded = 0;
    parse_decimal(digits + "e-" + std::to_string(scale), rounded);
    if (scale == 0) writer.long_integer(column, rounded, digits);
    else writer.number(column, rounded);
}

// 16 bytes as text: 8-4-4-4-12 hexadecimal digits.
inline void put_uuid(RowWriter &writer, u32 column, const char *bytes) {
    static constexpr char HEX[] = "0123456789abcdef";
    std::string text;
    for (u32 i = 0; i < 16; ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += HEX[static_cast<u8>(bytes[i]) >> 4];
        text += HEX[static_cast<u8>(bytes[i]) & 15];
    }
    writer.text(column, text);
}

}  // namespace st
