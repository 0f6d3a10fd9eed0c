// A column of cells as transforms read and make them, of a block of rows: a number, a time or a text each, or the hash
// of what is no text.
#pragma once
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "decode/row_mask.h"
#include "decode/text_hash.h"

namespace st {

enum class Holds : u8 { number, time, text, hash };

constexpr f64 NO_NUMBER = std::numeric_limits<f64>::quiet_NaN();   // a missing cell of each
constexpr i64 NO_TIME = std::numeric_limits<i64>::min();

constexpr bool is_none(std::string_view text) { return text.data() == nullptr; }   // an empty one may stand in

// What no float64 is, is no number to a transform.
inline f64 number_or_none(f64 value) { return value - value == 0 ? value : NO_NUMBER; }

inline Holds holds_of(const std::string &name) {
    if (name == "number") return Holds::number;
    if (name == "time") return Holds::time;
    if (name == "text") return Holds::text;
    if (name == "hash") return Holds::hash;
    throw std::invalid_argument("no cell holds a " + name);
}

// Of a hash only `given` says whether it is there.
struct CellColumn {
    explicit CellColumn(Holds holds) : holds(holds), given(BLOCK_ROWS) {
        if (holds == Holds::number) numbers.resize(BLOCK_ROWS);
        if (holds == Holds::time) times.resize(BLOCK_ROWS);
        if (holds == Holds::text) texts.resize(BLOCK_ROWS), taken.resize(BLOCK_ROWS);
        if (holds == Holds::hash) hashes.resize(BLOCK_ROWS);
    }

    Holds holds;
    std::vector<u8> given;   // whether there is a cell that nothing stands in for
    std::vector<f64> numbers;
    std::vector<i64> times;
    std::vector<std::string_view> texts;   // one without an address is missing
    std::vector<u64> hashes;
    std::vector<u64> taken;      // of texts that are given, where their kind takes their hashes
    TextHasher taken_by{0, 0};   // 0 bits: it takes none

    void take_missing(u32 row) {
        given[row] = 0;
        if (holds == Holds::number) numbers[row] = NO_NUMBER;
        if (holds == Holds::time) times[row] = NO_TIME;
        if (holds == Holds::text) texts[row] = {};
    }

    // One of another column that holds the same.
    void copy_cell(u32 row, const CellColumn &from, u32 at) {
        given[row] = 1;
        if (holds == Holds::number) numbers[row] = from.numbers[at];
        else if (holds == Holds::time) times[row] = from.times[at];
        else if (holds == Holds::text) texts[row] = from.texts[at], taken[row] = from.taken[at];
        else hashes[row] = from.hashes[at];
        taken_by = from.taken_by;
    }

    // Whether a row's cell is there, of what is no hash.
    bool is_there(u32 row) const {
        if (holds == Holds::number) return numbers[row] == numbers[row];
        return holds == Holds::time ? times[row] != NO_TIME : !is_none(texts[row]);
    }

    bool any_missing(u32 count) const { return std::memchr(given.data(), 0, count); }

    // Sets `given` by the cells themselves. One row is most blocks, hence its own way.
    void find_given(u32 count) {
        if (holds == Holds::hash) return;
        if (count == 1) [[likely]] {
            given[0] = is_there(0);
            return;
        }
        if (holds == Holds::number && !any_is_none(numbers.data(), count)) std::memset(given.data(), 1, count);
        else
            for (u32 i = 0; i < count; ++i) given[i] = is_there(i);
    }

  private:
    static bool any_is_none(const f64 *numbers, u32 count) {   // by whole vectors
        i64 none = 0;
#pragma GCC unroll 4
        for (u32 i = 0; i < count; ++i) none |= numbers[i] != numbers[i] ? -1 : 0;
        return none;
    }
};

// What stands in for a missing cell.
struct CellStandIn {
    f64 number = NO_NUMBER;
    i64 time = NO_TIME;
    std::string text;
    u64 hash = 0;

    void put(CellColumn &column, u32 count) const {
        if (!column.any_missing(count)) return;
        for (u32 i = 0; i < count; ++i) {
            if (column.given[i]) continue;
            if (column.holds == Holds::number) column.numbers[i] = number;
            if (column.holds == Holds::time) column.times[i] = time;
            if (column.holds == Holds::text) column.texts[i] = text;
            if (column.holds == Holds::hash) column.hashes[i] = hash;
        }
    }
};

}  // namespace st
