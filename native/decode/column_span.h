// A column's cells side by side, of one physical type: what columnar formats give. Nothing is owned.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "decode/decode_plan.h"
#include "decode/row_writer.h"
#include "decode/utf8.h"

namespace st {

// Rows of a slot that are filled column by column.
struct RowBlock {
    const DecodePlan &plan;
    u8 *slot;
    u32 first, count;
    i64 newest_event_time_ms;

    u64 stride(Place place) const { return plan.blocks[place.block].stride; }
    u8 *at(Place place) const {
        return slot + plan.blocks[place.block].offset + first * stride(place) + place.offset;
    }
    template <class T>
    void fill(Place place, T value) const {
        u8 *to = at(place);
        const u64 step = stride(place);
        for (u32 i = 0; i < count; ++i) std::memcpy(to + i * step, &value, sizeof value);
    }
};

struct ColumnSpan {
    CellType type{};
    const char *data = nullptr;    // nullptr: the record does not hold the column
    const char *nulls = nullptr;   // one bit a row, lowest first, 1 = missing; nullptr: none is
    const char *ends = nullptr;    // text, words: of each entry, u32
    const char *letters = nullptr;
    u32 entries = 0;               // texts there are: rows, or words
    std::vector<i32> words;        // of each word: what its column's kind knows of it, or one of these
    static constexpr i32 EMPTY = -1, BAD = -2;

    bool is_null(u32 row) const { return nulls && (nulls[row >> 3] >> (row & 7) & 1); }

    bool any_null(u32 from, u32 to) const {
        for (u32 row = from; nulls && row < to; ++row)
            if (is_null(row)) return true;
        return false;
    }

    // Ends in ascending order keep all texts together within `size`, so that checking them is linear. What is wrong
    // with them, or nullptr.
    const char *set_texts(const char *bytes, u64 size, u32 count) {
        ends = bytes;
        entries = count;
        letters = bytes + u64{4} * count;
        const u64 letter_bytes = size - u64{4} * count;
        u32 last = 0;
        for (u32 i = 0; i < count; ++i) {
            const u32 end = load_little<u32>(ends + u64{4} * i);
            if (end < last || end > letter_bytes) return "text ends out of order";
            last = end;
        }
        return nullptr;
    }

    std::string_view text_at(u32 index) const {
        const u32 from = index ? load_little<u32>(ends + u64{4} * (index - 1)) : 0;
        return {letters + from, load_little<u32>(ends + u64{4} * index) - from};
    }

    // What each word is, found out once: what the kind knows of it, or whether it may be used at all.
    void check_words(const Kind &kind) {
        words.assign(type == CellType::words ? entries : 0, BAD);
        for (u32 i = 0; i < words.size(); ++i) {
            const std::string_view word = text_at(i);
            if (word.empty()) words[i] = EMPTY;
            else if (is_utf8(word)) words[i] = kind.word(word);
        }
    }

    // Cell `row` through the writer: any type, any column.
    void read_cell(RowWriter &writer, u32 column, u32 row) const {
        if (is_null(row)) return writer.missing(column);
        const char *p = data + bytes_of(type) * row;
        switch (type) {
            case CellType::f32: return writer.number(column, load_little<f32>(p));
            case CellType::f64: return writer.number(column, load_little<f64>(p));
            case CellType::i8: return whole(writer, column, load_little<i8>(p));
            case CellType::i16: return whole(writer, column, load_little<std::int16_t>(p));
            case CellType::i32: return whole(writer, column, load_little<i32>(p));
            case CellType::i64: return whole(writer, column, load_little<i64>(p));
            case CellType::u8: return writer.integer(column, load_little<u8>(p), false);
            case CellType::u16: return writer.integer(column, load_little<u16>(p), false);
            case CellType::u32: return writer.integer(column, load_little<u32>(p), false);
            case CellType::u64: return writer.integer(column, load_little<u64>(p), false);
            case CellType::boolean:
                if (*p == 0 || *p == 1) return writer.boolean(column, *p);
                return writer.wrong(column, "a boolean of value " + std::to_string(static_cast<u8>(*p)));
            case CellType::text: return text_cell(writer, column, row);
            case CellType::words: return word_cell(writer, column, load_little<u32>(p));
        }
    }

  private:
    static void whole(RowWriter &writer, u32 column, i64 value) {
        writer.integer(column, value < 0 ? 0 - static_cast<u64>(value) : static_cast<u64>(value), value < 0);
    }

    void text_cell(RowWriter &writer, u32 column, u32 row) const {
        const std::string_view text = text_at(row);
        if (is_utf8(text)) writer.text(column, text);
        else writer.wrong(column, "text that is not UTF-8");
    }

    void word_cell(RowWriter &writer, u32 column, u32 code) const {
        if (code >= entries)
            return writer.wrong(column, "word " + std::to_string(code) + " of " + std::to_string(entries));
        if (words[code] == BAD) return writer.wrong(column, "text that is not UTF-8");
        if (words[code] == EMPTY) return writer.missing(column);
        writer.word(column, text_at(code), words[code]);
    }
};

}  // namespace st
