// Cells of Avro's logical types whose bytes are no number yet: decimals and UUIDs.
#pragma once
#include "decode/row_writer.h"
#include "decode/unscaled_integer.h"

namespace st {

// The integer over 10^scale, as the nearest double; without a scale the integer itself.
inline void put_decimal(RowWriter &writer, u32 column, const char *bytes, u64 size, u32 scale) {
    if (size > MOST_DECIMAL_BYTES)
        return writer.wrong(column, "a decimal of " + std::to_string(size) + " bytes");
    const UnscaledInteger value(bytes, size);
    if (scale) return writer.number(column, value.over(static_cast<i32>(scale)));
    if (value.is_small()) return writer.integer(column, value.magnitude(), value.negative());
    writer.long_integer(column, value.over(0), value.digits());
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
