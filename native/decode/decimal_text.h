// A number written as text: an optional sign, digits with or without a point, an optional exponent; spaces around it.
#pragma once
#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "base/types.h"

namespace st {

// Whether the number, far from one, is larger: by the place of its first digit but 0, and its exponent.
inline bool is_beyond_one(std::string_view text) {
    i64 places = 0, exponent = 0;   // digits before the point from that one on; zeros behind it, as a negative number
    bool begun = false, behind = false;
    u64 at = 0;
    for (; at < text.size() && (text[at] | 0x20) != 'e'; ++at) {
        if (text[at] == '.') behind = true;
        else if (begun |= text[at] != '0'; begun != behind) places += begun ? 1 : -1;
    }
    const bool negative = at + 1 < text.size() && text[at + 1] == '-';
    for (++at; at < text.size(); ++at)
        if (text[at] >= '0' && text[at] <= '9') exponent = std::min<i64>(exponent * 10 + (text[at] - '0'), 1 << 30);
    return places + (negative ? -exponent : exponent) > 0;
}

// What the spaces and the sign are around.
inline std::string_view unsigned_text(std::string_view text, bool &negative) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    negative = !text.empty() && text.front() == '-';
    if (negative || (!text.empty() && text.front() == '+')) text.remove_prefix(1);
    return text;
}

// A whole number of up to 64 bits, digits alone. False for what is none.
inline bool parse_whole(std::string_view text, u64 &magnitude, bool &negative) {
    text = unsigned_text(text, negative);
    const char *const end = text.data() + text.size();
    const auto [read, error] = std::from_chars(text.data(), end, magnitude);
    return read == end && error == std::errc();
}

// False for what is none. Infinite for what no double holds, 0 for what lies too near to it.
inline bool parse_decimal(std::string_view text, f64 &value) {
    bool negative;
    text = unsigned_text(text, negative);
    // from_chars takes a sign, infinities and NaN as well
    if (text.empty() || !((text.front() >= '0' && text.front() <= '9') || text.front() == '.')) return false;
    const char *const end = text.data() + text.size();
    const auto [read, error] = std::from_chars(text.data(), end, value);
    if (read != end || error == std::errc::invalid_argument) return false;
    if (error == std::errc::result_out_of_range)   // which leaves the value alone
        value = is_beyond_one(text) ? std::numeric_limits<f64>::infinity() : 0;
    if (negative && (value != 0 || text.find_first_of(".eE") != text.npos)) value = -value;   // "-0" is 0
    return true;
}

}  // namespace st
