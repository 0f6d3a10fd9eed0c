// Whether two texts are the same, for short ones: without a call.
#pragma once
#include <cstring>
#include <string_view>

#include "base/types.h"

namespace st {

template <class Word>
bool same_word(const char *a, const char *b) {
    Word first, second;
    std::memcpy(&first, a, sizeof first);
    std::memcpy(&second, b, sizeof second);
    return first == second;
}

inline bool same_text(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    const u64 size = a.size();
    const char *const x = a.data(), *const y = b.data();
    if (size > 16) return std::memcmp(x, y, size) == 0;
    if (size >= 8) return same_word<u64>(x, y) & same_word<u64>(x + size - 8, y + size - 8);
    if (size >= 4) return same_word<u32>(x, y) & same_word<u32>(x + size - 4, y + size - 4);
    if (size >= 2) return same_word<u16>(x, y) & same_word<u16>(x + size - 2, y + size - 2);
    return size == 0 || *x == *y;
}

}  // namespace st
