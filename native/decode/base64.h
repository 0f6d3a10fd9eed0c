// Base64 (RFC 4648, section 4): bytes in formats that have texts alone.
#pragma once
#include <string>
#include <string_view>

#include "base/types.h"

namespace st {

inline std::string to_base64(std::string_view bytes) {
    static constexpr char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (u64 at = 0; at < bytes.size(); at += 3) {
        u32 three = 0;
        for (u64 k = 0; k < 3; ++k) three = three << 8 | (at + k < bytes.size() ? static_cast<u8>(bytes[at + k]) : 0);
        for (u64 k = 0; k < 4; ++k)
            text += k <= bytes.size() - at ? LETTERS[three >> (18 - 6 * k) & 63] : '=';
    }
    return text;
}

// False: it is none. With its padding and nothing else in it.
inline bool from_base64(std::string_view text, std::string &bytes) {
    static constexpr auto VALUES = [] {
        struct Table {
            u8 of[256] = {};
        } table;
        for (u32 c = 0; c < 256; ++c) {
            u32 value = 64;
            if (c >= 'A' && c <= 'Z') value = c - 'A';
            if (c >= 'a' && c <= 'z') value = c - 'a' + 26;
            if (c >= '0' && c <= '9') value = c - '0' + 52;
            if (c == '+') value = 62;
            if (c == '/') value = 63;
            table.of[c] = static_cast<u8>(value);
        }
        return table;
    }();
    if (text.size() % 4) return false;
    u64 letters = text.size();
    while (letters && text.size() - letters < 2 && text[letters - 1] == '=') --letters;
    bytes.resize(letters * 3 / 4);
    u32 wrong = 0, four = 0;
    char *to = bytes.data();
    for (u64 at = 0; at < letters; ++at) {
        const u32 value = VALUES.of[static_cast<u8>(text[at])];
        wrong |= value;
        four = four << 6 | (value & 63);
        if (at % 4 == 0) continue;
        const u32 left = 6 - 2 * static_cast<u32>(at % 4);   // bits that wait for the next letter
        *to++ = static_cast<char>(four >> left);
    }
    return wrong < 64;
}

}  // namespace st
