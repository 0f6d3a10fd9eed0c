// Which rows of a block: one bit each, row 0 the lowest of words[0].
#pragma once
#include <algorithm>
#include <bit>

#include "base/types.h"

namespace st {

constexpr u32 BLOCK_ROWS = 256;   // of a columnar record, that go into a slot at a time

struct RowMask {
    static constexpr u32 WORDS = BLOCK_ROWS / 64;
    u64 words[WORDS] = {};

    bool any() const { return words[0] | words[1] | words[2] | words[3]; }
    void add(u32 row) { words[row >> 6] |= u64{1} << (row & 63); }
    bool has(u32 row) const { return words[row >> 6] >> (row & 63) & 1; }
    // The first row from `from` on that is in it, or not; `end` where there is none before.
    u32 first(u32 from, u32 end, bool in = true) const {
        for (u32 row = from; row < end; row = (row | 63) + 1) {
            const u64 word = (in ? words[row >> 6] : ~words[row >> 6]) >> (row & 63);
            if (word) return std::min(end, row + static_cast<u32>(std::countr_zero(word)));
        }
        return end;
    }
    template <class Call>
    void each(Call call) const {
        for (u32 w = 0; w < WORDS; ++w)
            for (u64 word = words[w]; word; word &= word - 1) call(64 * w + static_cast<u32>(std::countr_zero(word)));
    }
    RowMask &operator&=(const RowMask &other) {
        for (u32 w = 0; w < WORDS; ++w) words[w] &= other.words[w];
        return *this;
    }
    RowMask &operator|=(const RowMask &other) {
        for (u32 w = 0; w < WORDS; ++w) words[w] |= other.words[w];
        return *this;
    }
};

}  // namespace st
