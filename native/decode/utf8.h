// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once
#include <cstring>
#include <string>
#include <string_view>

#include "base/types.h"

namespace st {

inline constexpr char BYTE_ORDER_MARK[] = "\xef\xbb\xbf";

inline bool is_ascii(std::string_view text) {
    const char *p = text.data(), *const end = p + text.size();
    u64 all = 0;
    for (; end - p >= 8; p += 8) {
        u64 word;
        std::memcpy(&word, p, 8);
        all |= word;
    }
    for (; p < end; ++p) all |= static_cast<u8>(*p);
    return (all & 0x8080808080808080u) == 0;
}

inline bool is_utf8(std::string_view text) {
    const u8 *p = reinterpret_cast<const u8 *>(text.data()), *end = p + text.size();
    const auto follows = [](u8 c) { return (c & 0xc0) == 0x80; };
    while (p < end) {
        const u8 c = *p;
        const u64 left = static_cast<u64>(end - p);
        if (c < 0x80) {
            p += 1;
        } else if (c >= 0xc2 && c <= 0xdf && left >= 2 && follows(p[1])) {
            p += 2;
        } else if ((c & 0xf0) == 0xe0 && left >= 3 && follows(p[1]) && follows(p[2]) && (c != 0xe0 || p[1] >= 0xa0) &&
                   (c != 0xed || p[1] < 0xa0)) {
            p += 3;
        } else if (c >= 0xf0 && c <= 0xf4 && left >= 4 && follows(p[1]) && follows(p[2]) && follows(p[3]) &&
                   (c != 0xf0 || p[1] >= 0x90) && (c != 0xf4 || p[1] < 0x90)) {
            p += 4;
        } else {
            return false;
        }
    }
    return true;
}

// The code point at `p` of valid UTF-8, and `p` behind it.
inline u32 take_point(const char *&p) {
    const u32 first = static_cast<u8>(*p++);
    if (first < 0x80) return first;
    const u32 more = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    u32 point = first & (0x3fu >> more);
    for (u32 k = 0; k < more; ++k) point = point << 6 | (static_cast<u8>(*p++) & 0x3f);
    return point;
}

// At most 4 bytes; where the next one goes.
inline char *put_point(char *to, u32 point) {
    const u32 more = point < 0x80 ? 0 : point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    constexpr u32 HEADS[] = {0, 0xc0, 0xe0, 0xf0};
    *to++ = static_cast<char>(HEADS[more] | point >> 6 * more);
    for (u32 k = more; k-- > 0;) *to++ = static_cast<char>(0x80 | (point >> 6 * k & 0x3f));
    return to;
}

inline void append_utf8(std::string &out, u32 point) {
    char bytes[4];
    out.append(bytes, put_point(bytes, point));
}

}  // namespace st
