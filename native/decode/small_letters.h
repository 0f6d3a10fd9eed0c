// Small letters of capitals, code point by code point: ASCII's, and those of a table.
#pragma once
#include <vector>

#include "base/types.h"

namespace st {

class SmallLetters {
  public:
    // `pairs`: capitals beyond ASCII, ascending, each followed by its small letter.
    explicit SmallLetters(std::vector<i64> pairs) : pairs_(std::move(pairs)) {}

    static constexpr u64 GROWTH = 2;   // bytes of a small letter for one of its capital's, at most

    u32 of(u32 code) const {
        if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 32 : code;
        u64 low = 0, high = pairs_.size() / 2;
        while (low < high) {
            const u64 middle = (low + high) / 2;
            if (pairs_[2 * middle] < i64{code}) low = middle + 1;
            else high = middle;
        }
        return 2 * low < pairs_.size() && pairs_[2 * low] == i64{code} ? static_cast<u32>(pairs_[2 * low + 1]) : code;
    }

  private:
    const std::vector<i64> pairs_;
};

}  // namespace st
