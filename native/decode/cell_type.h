// The physical types a column's cells may have where they lie side by side, and the text of what stood in a cell.
#pragma once
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>

#include "base/types.h"

namespace st {

// In the packed wire's order. text: ends and letters; words: codes of texts; fixed: letters, of each as many bytes;
// hash32, hash64: of a category's text; floats: f32, of each as many; bytes: as text; list: ends, and cells of any
// other type but floats.
enum class CellType : u8 {
    f32 = 1, f64, i8, i16, i32, i64, u8, u16, u32, u64, boolean, text, words, fixed, hash32, hash64, floats, bytes,
    list
};

constexpr CellType LAST_CELL_TYPE = CellType::list;

constexpr u64 bytes_of(CellType type) {
    constexpr u64 BYTES[] = {0, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1, 4, 4, 0, 4, 8, 0, 4, 4};   // 0: as its column says
    return BYTES[static_cast<u32>(type)];
}

// A text a row.
constexpr bool holds_texts(CellType type) { return type == CellType::text || type == CellType::fixed; }
constexpr bool is_hash(CellType type) { return type == CellType::hash32 || type == CellType::hash64; }

template <class T>
T load_little(const char *p) {
    T value;
    std::memcpy(&value, p, sizeof value);
    return value;
}

// What stood in a cell that its column cannot take, cut to 40 characters and made printable, for a reason.
inline std::string shown(std::string_view got) {
    std::string text;
    for (char c : got.substr(0, 40)) text += c >= ' ' && c < 0x7f ? c : '?';
    return got.size() > 40 ? text + "..." : text;
}

inline std::string quoted(std::string_view text) { return '"' + shown(text) + '"'; }

inline std::string shown_number(f64 value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    char text[32];
    return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

// The text that an integer is as a category or a class.
inline std::string_view integer_text(u64 magnitude, bool negative, char (&buffer)[24]) {
    buffer[0] = '-';
    const bool minus = negative && magnitude;
    return {buffer, static_cast<u64>(std::to_chars(buffer + minus, buffer + sizeof buffer, magnitude).ptr - buffer)};
}

// The number that an integer is: it has no negative zero.
inline f64 integer_number(u64 magnitude, bool negative) {
    return negative && magnitude ? -static_cast<f64>(magnitude) : static_cast<f64>(magnitude);
}

// Whether a number is a whole one below 2^53, so that its text is exact.
inline bool is_exact_whole(f64 value) {
    return std::abs(value) < 9007199254740992.0 && static_cast<f64>(static_cast<i64>(value)) == value;
}

}  // namespace st
