// Keys → what each leads to: a hash table for any order, and a learnt sequence of key tokens for the usual order.
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
    // `columns`: of each name, its column or what stands for one; never NO_COLUMN.
    void build(const std::vector<std::string> &names, const std::vector<i32> &columns) {
        names_ = names;
        u64 size = 16;
        while (size < names.size() * 2) size *= 2;
        mask_ = size - 1;
        table_.assign(size, {});
        for (u64 i = 0; i < names.size(); ++i) {
            u64 at = hash(names[i].data(), names[i].size()) & mask_;
            while (table_[at].column != NO_COLUMN) at = (at + 1) & mask_;
            table_[at] = {tail(names[i].data() + (names[i].size() & ~u64{7}), names[i].size() & 7), names[i].size(),
                          columns[i], static_cast<u32>(i)};
        }
    }

    bool empty() const { return names_.empty(); }

    i32 find(std::string_view key) const {
        for (u64 at = hash(key.data(), key.size()) & mask_; table_[at].column != NO_COLUMN; at = (at + 1) & mask_)
            if (names_[table_[at].name] == key) return table_[at].column;
        return NO_COLUMN;
    }

    // The same for a key of `size` < 8 bytes that lie in `word`, zeros above them.
    i32 find_short(u64 word, u64 size) const {
        for (u64 at = mix(size * SEED ^ word) & mask_;; at = (at + 1) & mask_) {
            const Entry &entry = table_[at];
            if (entry.column == NO_COLUMN || (entry.word == word && entry.size == size)) return entry.column;
        }
    }

  private:
    struct Entry {
        u64 word = 0, size = 0;   // the name's bytes behind its last whole 8; the name's length
        i32 column = NO_COLUMN;
        u32 name = 0;
    };
    static constexpr u64 SEED = 0x9e3779b97f4a7c15u;

    static u64 hash(const char *p, u64 n) {
        u64 h = n * SEED;
        for (; n >= 8; n -= 8, p += 8) h = mix(h ^ load64(p));
        return mix(h ^ tail(p, n));
    }
    static u64 tail(const char *p, u64 n) {
        u64 word = 0;
        std::memcpy(&word, p, n);
        return word;
    }
    static u64 mix(u64 x) {
        x *= 0xbf58476d1ce4e5b9u;
        return x ^ (x >> 32);
    }
    std::vector<std::string> names_;
    std::vector<Entry> table_;
    u64 mask_ = 0;
};

// The bytes of one key as they stood in the record before (separator, key, colon), compared in one or two loads.
// `p` must have 32 readable bytes.
struct KeyToken {
    static constexpr u64 LONGEST = 32;
    u64 word[2] = {}, mask[2] = {};
    u32 size = 0;   // 0: nothing learnt, matches nothing
    i32 column = NO_COLUMN;
    u32 place = 0;   // RowWriter::number_place of the column
    u64 more_word[2] = {}, more_mask[2] = {};

    void learn(const char *p, u64 n, i32 of_column, u32 its_place) {
        size = 0;
        if (n > LONGEST) return;
        size = static_cast<u32>(n);
        column = of_column;
        place = its_place;
        for (u64 i = 0; i < 4; ++i) {
            const u64 bytes = n <= 8 * i ? 0 : n - 8 * i, ones = bytes >= 8 ? ~u64{0} : (u64{1} << (8 * bytes)) - 1;
            (i < 2 ? mask[i] : more_mask[i - 2]) = ones;
            (i < 2 ? word[i] : more_word[i - 2]) = load64(p + 8 * i) & ones;
        }
    }

    bool matches(const char *p) const {
        if (size - 1 >= 16) [[unlikely]]
            return matches_long(p);
        return (((load64(p) ^ word[0]) & mask[0]) | ((load64(p + 8) ^ word[1]) & mask[1])) == 0;
    }

  private:
    bool matches_long(const char *p) const {
        u64 differs = ((load64(p) ^ word[0]) & mask[0]) | ((load64(p + 8) ^ word[1]) & mask[1]);
        differs |= ((load64(p + 16) ^ more_word[0]) & more_mask[0]) | ((load64(p + 24) ^ more_word[1]) & more_mask[1]);
        return (differs == 0) & (size != 0);
    }
};

// The key tokens of a row, in the order of the row before. A row that leaves out one key is still followed. Where keys
// come in no order, learning them again and again would only cost: rows are then read without, and tried again later.
class KeyOrder {
  public:
    explicit KeyOrder(u64 columns) : tokens_(columns * 2 + 16 + 2) {}

    KeyToken *start() {
        misses_ = 0;
        return &tokens_[idle_ ? tokens_.size() - 2 : 0];   // the last two learn nothing and match nothing
    }

    // Is the key at p the one after the expected? Then goes on behind it.
    static const KeyToken *skip_one(KeyToken *&token, const char *p) {
        if (!token[1].matches(p)) return nullptr;
        token += 2;
        return token - 1;
    }

    void learn(KeyToken *&token, const char *p, u64 n, i32 column, u32 place) {
        if (token >= &tokens_[tokens_.size() - 2]) return;
        ++misses_;
        (token++)->learn(p, n, column, place);
    }

    void finish(const KeyToken *token) {
        if (idle_) --idle_;
        else if (misses_ > 2 && misses_ * 2 > static_cast<u64>(token - tokens_.data()))
            idle_ = ++strikes_ > 2 ? IDLE_ROWS : 0;
        else strikes_ = 0;
    }

  private:
    static constexpr u32 IDLE_ROWS = 64;
    std::vector<KeyToken> tokens_;
    u64 misses_ = 0;
    u32 idle_ = 0, strikes_ = 0;
};

}  // namespace st
