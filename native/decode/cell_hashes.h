// Hashes of texts, and of whole numbers' texts, in columns of cells: each taken once for a block of rows, whichever
// transforms ask for it.
#pragma once
#include <vector>

#include "decode/cell_type.h"
#include "decode/cell_column.h"
#include "decode/text_hash.h"

namespace st {

// Of one column by one hasher; of a row without a cell `there` is 0, and the hash anything.
struct HashedCells {
    const u64 *hashes;
    const u8 *there;
};

class CellHashes {
  public:
    // Cells have changed.
    void start_block() { used_ = 0; }

    HashedCells of(const CellColumn &column, const TextHasher &by, u32 count) {
        if (column.holds == Holds::hash) return {column.hashes.data(), column.given.data()};
        if (column.taken_by == by && !column.any_missing(count)) return {column.taken.data(), column.given.data()};
        for (u64 k = 0; k < used_; ++k)
            if (const Taken &taken = taken_[k]; taken.is_of(column, by))
                return {taken.hashes.data(), taken.there.data()};
        if (used_ == taken_.size()) taken_.emplace_back();
        Taken &taken = taken_[used_++];
        taken.column = &column, taken.by = by;
        if (column.holds == Holds::number) take_numbers(column.numbers.data(), by, count, taken);
        else if (by.bits == 64) take_texts(column.texts.data(), LongHasher{by.seed}, count, taken);
        else take_texts(column.texts.data(), ShortHasher{by.seed}, count, taken);
        return {taken.hashes.data(), taken.there.data()};
    }

  private:
    struct Taken {
        const CellColumn *column = nullptr;
        TextHasher by{};
        std::vector<u64> hashes = std::vector<u64>(BLOCK_ROWS);
        std::vector<u8> there = std::vector<u8>(BLOCK_ROWS);

        bool is_of(const CellColumn &that, const TextHasher &hasher) const {
            return column == &that && by == hasher;
        }
    };
    struct ShortHasher {
        u32 seed;
        u64 operator()(std::string_view text) const { return murmur3(text.data(), text.size(), seed); }
    };
    struct LongHasher {
        u32 seed;
        u64 operator()(std::string_view text) const { return murmur3_64(text.data(), text.size(), seed); }
    };

    template <class Hasher>
    static void take_texts(const std::string_view *texts, Hasher hasher, u32 count, Taken &to) {
        for (u32 i = 0; i < count; ++i) {
            to.hashes[i] = hasher(texts[i]);
            to.there[i] = !is_none(texts[i]);
        }
    }
    static void take_numbers(const f64 *numbers, const TextHasher &by, u32 count, Taken &to) {
        for (u32 i = 0; i < count; ++i) {
            to.there[i] = is_exact_whole(numbers[i]);
            char buffer[24];
            if (to.there[i])
                to.hashes[i] = by(integer_text(static_cast<u64>(std::abs(numbers[i])), numbers[i] < 0, buffer));
        }
    }

    std::vector<Taken> taken_;
    u64 used_ = 0;
};

}  // namespace st
