// Column names → column index: a hash table for any order, and a learnt sequence of key tokens for the usual order.
#pragma once
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace st {

constexpr i32 NO_COLUMN = -1;

inline u64 load64(const void *p) {
    u64 word;
    std::memcpy(&word, p, 8);
    return word;
}

class KeyTable {
  public:
    void build(const std::vector<std::string> &names) {
        names_ = names;
        u64 size = 16;
        while (size < names.size() * 2) size *= 2;
        mask_ = size - 1;
        table_.assign(size, NO_COLUMN);
        for (u64 i = 0; i < names.size(); ++i) {
            u64 at = hash(names[i].data(), names[i].size()) & mask_;
            while (table_[at] != NO_COLUMN) at = (at + 1) & mask_;
            table_[at] = static_cast<i32>(i);
        }
    }

    i32 find(std::string_view key) const {
        for (u64 at = hash(key.data(), key.size()) & mask_; table_[at] != NO_COLUMN; at = (at + 1) & mask_)
            if (names_[table_[at]] == key) return table_[at];
        return NO_COLUMN;
    }

  private:
    static u64 hash(const char *p, u64 n) {
        u64 h = n * 0x9e3779b97f4a7c15u;
        for (; n >= 8; n -= 8, p += 8) h = mix(h ^ load64(p));
        u64 tail = 0;
        std::memcpy(&tail, p, n);
        return mix(h ^ tail);
    }
    static u64 mix(u64 x) {
        x *= 0xbf58476d1ce4e5b9u;
        return x ^ (x >> 32);
    }
    std::vector<std::string> names_;
    std::vector<i32> table_;
    u64 mask_ = 0;
};

// The bytes of one key as they stood in the record before (separator, key, colon), compared in one or two loads.
// `p` must have 32 readable bytes.
struct KeyToken {
    static constexpr u64 LONGEST = 32;
    u64 word[4] = {}, mask[4] = {};
    u32 size = 0;   // 0: nothing learnt, matches nothing
    i32 column = NO_COLUMN;

    void learn(const char *p, u64 n, i32 of_column) {
        size = 0;
        if (n > LONGEST) return;
        size = static_cast<u32>(n);
        column = of_column;
        u8 bytes[LONGEST] = {}, ones[LONGEST] = {};
        std::memcpy(bytes, p, n);
        std::memset(ones, 0xff, n);
        std::memcpy(word, bytes, LONGEST);
        std::memcpy(mask, ones, LONGEST);
    }

    bool matches(const char *p) const {
        u64 differs = ((load64(p) ^ word[0]) & mask[0]) | ((load64(p + 8) ^ word[1]) & mask[1]);
        if (size > 16) [[unlikely]]
            differs |= ((load64(p + 16) ^ word[2]) & mask[2]) | ((load64(p + 24) ^ word[3]) & mask[3]);
        return differs == 0 && size != 0;
    }
};

// The key tokens of a row, in the order of the row before. A row that leaves out one key is still followed.
class KeyOrder {
  public:
    explicit KeyOrder(u64 columns) : tokens_(columns * 2 + 16) {}

    void restart() { at_ = 0; }

    const KeyToken *expect(const char *p) {
        if (at_ >= tokens_.size()) return nullptr;
        if (tokens_[at_].matches(p)) [[likely]]
            return &tokens_[at_++];
        if (at_ + 1 < tokens_.size() && tokens_[at_ + 1].matches(p)) {
            at_ += 2;
            return &tokens_[at_ - 1];
        }
        return nullptr;
    }

    void learn(const char *p, u64 n, i32 column) {
        if (at_ < tokens_.size()) tokens_[at_++].learn(p, n, column);
    }

  private:
    std::vector<KeyToken> tokens_;
    u64 at_ = 0;
};

}  // namespace st
