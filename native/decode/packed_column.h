// The packed wire, version 1, one column of it. Little-endian throughout; a record is
//   0 "STPK" | 4 u16 version | 6 u16 columns | 8 u32 rows | 12 u32 bytes of the directory | 16 directory | columns
// and a directory entry, padded to 4 bytes,
//   0 u32 data offset | 4 u32 data bytes | 8 u32 nulls offset (0: none) |
//   12 u8 type | 13 u8 0 | 14 u16 name bytes | 16 name
// Offsets count from the record's start and are multiples of 64. Nulls: one bit a row, lowest first, 1 = missing.
// text: u32 ends[rows], then UTF-8. words: u32 codes[rows], u32 words, u32 ends[words], then UTF-8.
#pragma once
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "decode/row_writer.h"

namespace st {

enum class PackedType : u8 { f32 = 1, f64, i8, i16, i32, i64, u8, u16, u32, u64, boolean, text, words };

constexpr u64 PACKED_HEADER_BYTES = 16, PACKED_ENTRY_BYTES = 16;
constexpr u16 PACKED_VERSION = 1;

template <class T>
T load_little(const char *p) {
    T value;
    std::memcpy(&value, p, sizeof value);
    return value;
}

struct PackedColumn {
    u32 column = 0;          // of the plan
    PackedType type{};
    u32 data_offset = 0, data_bytes = 0, nulls_offset = 0;   // as the directory has them
    const char *data = nullptr;   // nullptr: the record does not hold the column
    const char *nulls = nullptr;
    const char *ends = nullptr;   // text, words
    const char *letters = nullptr;
    u32 entries = 0;              // texts there are: rows, or words
    std::vector<st::i32> words;   // of each word: a category's bucket, or one of these
    static constexpr st::i32 USABLE = 0, EMPTY = -1, BAD = -2;

    static u64 bytes_of(PackedType type) {
        static constexpr u64 BYTES[] = {0, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1, 4, 4};
        return BYTES[static_cast<u32>(type)];
    }

    // Finds the column's bytes in a record of `rows` rows; what is wrong with them, or nullptr. The offsets lie within
    // it.
    const char *bind(const char *record, u32 rows) {
        const char *const bytes = record + data_offset;
        const st::u64 size = data_bytes;
        if (bytes_of(type) * rows > size) return "fewer bytes than rows need";
        move_to(record);
        letters = nullptr;
        if (type == PackedType::text) {
            return set_texts(bytes, size, rows);
        } else if (type == PackedType::words) {
            const u64 codes = u64{4} * rows;
            if (size < codes + 4) return "fewer bytes than rows need";
            const st::u32 word_count = load_little<st::u32>(bytes + codes);
            if (st::u64{4} * word_count > size - codes - 4) return "fewer bytes than its words need";
            return set_texts(bytes + codes + 4, size - codes - 4, word_count);
        }
        return nullptr;
    }

    // The same column of another record with the same directory, if it holds no text; true.
    bool move_to(const char *record) {
        data = record + data_offset;
        nulls = nulls_offset ? record + nulls_offset : nullptr;
        return true;
    }

    bool is_null(u32 row) const { return nulls && (nulls[row >> 3] >> (row & 7) & 1); }

    bool any_null(u32 from, u32 to) const {
        for (u32 row = from; nulls && row < to; ++row)
            if (is_null(row)) return true;
        return false;
    }

    // What each word is, found out once: its bucket (category), or whether it may be used at all.
    void check_words(const PlanColumn &plan) {
        words.assign(type == PackedType::words ? entries : 0, BAD);
        for (u32 i = 0; i < words.size(); ++i) {
            const std::string_view word = text_at(i);
            if (word.empty()) words[i] = EMPTY;
            else if (is_utf8(word)) words[i] = plan.target == Target::category ? bucket(word, plan) : USABLE;
        }
    }

    // Cell `row` through the writer: any type, any column.
    void read_cell(RowWriter &writer, u32 row) const {
        if (is_null(row)) return writer.missing(column);
        const char *p = data + bytes_of(type) * row;
        switch (type) {
            case PackedType::f32: return writer.number(column, load_little<st::f32>(p));
            case PackedType::f64: return writer.number(column, load_little<st::f64>(p));
            case PackedType::i8: return whole(writer, load_little<st::i8>(p));
            case PackedType::i16: return whole(writer, load_little<std::int16_t>(p));
            case PackedType::i32: return whole(writer, load_little<i32>(p));
            case PackedType::i64: return whole(writer, load_little<st::i64>(p));
            case PackedType::u8: return writer.integer(column, load_little<st::u8>(p), false);
            case PackedType::u16: return writer.integer(column, load_little<u16>(p), false);
            case PackedType::u32: return writer.integer(column, load_little<st::u32>(p), false);
            case PackedType::u64: return writer.integer(column, load_little<st::u64>(p), false);
            case PackedType::boolean:
                if (*p == 0 || *p == 1) return writer.boolean(column, *p);
                return writer.wrong(column, "a boolean of value " + std::to_string(static_cast<st::u8>(*p)));
            case PackedType::text: return text_cell(writer, row);
            case PackedType::words: return word_cell(writer, load_little<st::u32>(p));
        }
    }

  private:
    // Ends in ascending order keep all texts together within the record's size, so that checking them is linear.
    const char *set_texts(const char *bytes, st::u64 size, st::u32 count) {
        ends = bytes;
        entries = count;
        letters = bytes + st::u64{4} * count;
        const st::u64 letter_bytes = size - st::u64{4} * count;
        st::u32 last = 0;
        for (st::u32 i = 0; i < count; ++i) {
            const st::u32 end = load_little<st::u32>(ends + st::u64{4} * i);
            if (end < last || end > letter_bytes) return "text ends out of order";
            last = end;
        }
        return nullptr;
    }

    std::string_view text_at(st::u32 index) const {
        const st::u32 from = index ? load_little<st::u32>(ends + st::u64{4} * (index - 1)) : 0;
        return {letters + from, load_little<st::u32>(ends + st::u64{4} * index) - from};
    }

    static st::i32 bucket(std::string_view word, const PlanColumn &plan) {
        return static_cast<st::i32>(murmur3(word.data(), word.size(), plan.seed) % plan.buckets);
    }

    void whole(RowWriter &writer, st::i64 value) const {
        writer.integer(column, value < 0 ? 0 - static_cast<st::u64>(value) : static_cast<st::u64>(value), value < 0);
    }

    void text_cell(RowWriter &writer, st::u32 row) const {
        const std::string_view text = text_at(row);
        if (is_utf8(text)) writer.text(column, text);
        else writer.wrong(column, "text that is not UTF-8");
    }

    void word_cell(RowWriter &writer, st::u32 code) const {
        if (code >= entries)
            return writer.wrong(column, "word " + std::to_string(code) + " of " + std::to_string(entries));
        if (words[code] == BAD) return writer.wrong(column, "text that is not UTF-8");
        if (words[code] == EMPTY) return writer.missing(column);
        writer.word(column, text_at(code), static_cast<st::u32>(words[code]));
    }
};

}  // namespace st
