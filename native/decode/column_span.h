// A column's cells side by side, of one physical type: what columnar formats give. Nothing is owned.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "decode/decode_plan.h"
#include "decode/row_mask.h"
#include "decode/row_writer.h"
#include "decode/utf8.h"

namespace st {

// Rows of a slot that are filled column by column, at most BLOCK_ROWS.
struct RowBlock {
    const DecodePlan &plan;
    u8 *slot;
    u32 first, count;
    i64 newest_event_time_ms;
    Cells *cells = nullptr;          // where transforms read; without any: nullptr
    const RowMask *only = nullptr;   // the rows that fill() fills; all

    u64 stride(Place place) const { return plan.blocks[place.block].stride; }
    u8 *at(Place place) const {
        return slot + plan.blocks[place.block].offset + first * stride(place) + place.offset;
    }
    // Of a ragged block: where the first row's values begin, and behind that where each row's end; and all values.
    struct Ragged {
        u32 *ends;
        u8 *values;
        u64 capacity;
    };
    Ragged ragged(Place place) const {
        const Block &block = plan.layout.blocks[place.block];
        u32 *const ends = reinterpret_cast<u32 *>(slot + block.offset) + first;
        if (first == 0) ends[0] = 0;
        return {ends, slot + block.values, block.capacity};
    }
    template <class T>
    void fill(Place place, T value) const {
        u8 *to = at(place);
        const u64 step = stride(place);
        const auto put = [&](u32 row) { std::memcpy(to + row * step, &value, sizeof value); };
        if (only) return only->each(put);
        for (u32 row = 0; row < count; ++row) put(row);
    }
};

struct ColumnSpan {
    u32 column = 0;                // of the plan, where it is one's
    CellType type{};
    const TimeUnit *unit = nullptr;   // of i32 and i64 that are times; nullptr: of what they are, their column says
    const char *data = nullptr;    // nullptr: the record does not hold the column
    const char *nulls = nullptr;   // one bit a row, lowest first, 1 = missing; nullptr: none is
    const char *ends = nullptr;    // text, words: of each entry, u32; list: of each row, among its cells
    const ColumnSpan *each = nullptr;   // list: its cells, none of which is a null
    const char *letters = nullptr;
    u32 width = 0;                 // bytes from cell to cell
    u32 seed = 0;                  // of hashes
    u32 entries = 0;               // texts there are: rows, or words
    u32 begin = 0;                 // text, list: where the first row's begins
    std::vector<i32> words;        // of each word: what its column's kind knows of it, or one of these
    std::string known_table;       // that they are of
    static constexpr i32 EMPTY = Kind::NO_WORD - 1, BAD = Kind::NO_WORD - 2;

    bool is_null(u32 row) const { return nulls && (nulls[row >> 3] >> (row & 7) & 1); }

    // The missing ones of the `count` rows from `row` on, at most BLOCK_ROWS.
    RowMask nulls_of(u32 row, u32 count) const {
        RowMask mask;
        for (u32 at = 0; nulls && at < count; at += 64)
            mask.words[at / 64] = null_word(row + at, std::min(count - at, 64u));
        return mask;
    }

    // Ends in ascending order keep all texts together within `size`, so that checking them is linear. What is wrong
    // with them, or nullptr.
    const char *set_texts(const char *bytes, u64 size, u32 count) {
        ends = bytes;
        begin = 0;
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

    // One of `text`, of `fixed`, or of the words of `words`.
    std::string_view text_at(u32 index) const {
        if (type == CellType::fixed) return {letters + u64{width} * index, width};
        const u32 from = begin_of(index);
        return {letters + from, load_little<u32>(ends + u64{4} * index) - from};
    }

    // Where a row's text or list begins: where that before ends.
    u32 begin_of(u32 row) const { return row ? load_little<u32>(ends + u64{4} * (row - 1)) : begin; }

    // What each word is, found out once: what the kind knows of it, or whether it may be used at all. The empty word is
    // what stands in for a missing cell, where something does.
    void check_words(const PlanColumn &column) {
        if (type != CellType::words) return words.clear();
        const std::string_view table(ends, texts(0, entries).size() + u64{4} * entries);
        if (table == known_table && words.size() == entries) return;
        known_table = table;
        words.assign(entries, BAD);
        const bool all_ascii = is_ascii(texts(0, entries));
        for (u32 i = 0; i < words.size(); ++i) {
            const std::string_view word = text_at(i);
            if (word.empty()) words[i] = column.missing == Missing::value ? column.kind->stand_in_word() : EMPTY;
            else if (all_ascii || is_utf8(word)) words[i] = column.kind->word(word);
        }
    }

    // All letters of texts [from, to), one behind the other.
    std::string_view texts(u32 from, u32 to) const {
        if (from == to) return {};
        const char *const begin = text_at(from).data();
        const std::string_view last = text_at(to - 1);
        return {begin, static_cast<u64>(last.data() + last.size() - begin)};
    }

    // Calls put(i, number) for the cells from `row` on; false where they are no numbers.
    template <class Put>
    bool each_number(u32 row, u32 count, Put put) const {
        switch (type) {
            case CellType::f32: return each_of<f32>(row, count, put);
            case CellType::f64: return each_of<f64>(row, count, put);
            case CellType::i8: return each_of<i8>(row, count, put);
            case CellType::i16: return each_of<std::int16_t>(row, count, put);
            case CellType::i32: return each_of<i32>(row, count, put);
            case CellType::i64: return each_of<i64>(row, count, put);
            case CellType::u8: return each_of<u8>(row, count, put);
            case CellType::u16: return each_of<u16>(row, count, put);
            case CellType::u32: return each_of<u32>(row, count, put);
            case CellType::u64: return each_of<u64>(row, count, put);
            default: return false;
        }
    }

    // Calls put(i, word) for the cells from `row` on, with what their column's kind knows of the word. Whether it does
    // of all.
    template <class Put>
    bool each_word(u32 row, u32 count, Put put) const {
        const i32 *const known = words.data();
        const u64 size = words.size();
        const char *const codes = data + 4 * u64{row};
        i32 all = 0;   // below 0 when one of them is
        for (u32 i = 0; i < count; ++i) {
            const u32 code = load_little<u32>(codes + 4 * u64{i});
            const i32 word = code < size ? known[code] : BAD;
            all |= word;
            put(i, word);
        }
        return all >= 0;
    }

    // Cell `row` through the writer: any type, any column.
    void read_cell(RowWriter &writer, u32 column, u32 row) const {
        if (is_null(row)) return writer.missing(column);
        const char *p = data + u64{width} * row;
        switch (type) {
            case CellType::f32: return writer.number(column, load_little<f32>(p));
            case CellType::f64: return writer.number(column, load_little<f64>(p));
            case CellType::i8: return whole(writer, column, load_little<i8>(p));
            case CellType::i16: return whole(writer, column, load_little<std::int16_t>(p));
            case CellType::i32: return whole_or_time(writer, column, load_little<i32>(p));
            case CellType::i64: return whole_or_time(writer, column, load_little<i64>(p));
            case CellType::u8: return writer.integer(column, load_little<u8>(p), false);
            case CellType::u16: return writer.integer(column, load_little<u16>(p), false);
            case CellType::u32: return writer.integer(column, load_little<u32>(p), false);
            case CellType::u64: return writer.integer(column, load_little<u64>(p), false);
            case CellType::boolean:
                if (*p == 0 || *p == 1) return writer.boolean(column, *p);
                return writer.wrong(column, "a boolean of value " + std::to_string(static_cast<u8>(*p)));
            case CellType::text:
            case CellType::fixed: return text_cell(writer, column, row);
            case CellType::hash32: return writer.hashed(column, {load_little<u32>(p), {32, seed}});
            case CellType::hash64: return writer.hashed(column, {load_little<u64>(p), {64, seed}});
            case CellType::words: return word_cell(writer, column, load_little<u32>(p));
            case CellType::floats: return list_cell(writer, column, p);
            case CellType::bytes: return writer.bytes(column, text_at(row));
            case CellType::list: return cells_of_list(writer, column, row);
        }
    }

  private:
    template <class T, class Put>
    bool each_of(u32 row, u32 count, Put put) const {
        const char *from = data + sizeof(T) * u64{row};
        for (u32 i = 0; i < count; ++i) put(i, load_little<T>(from + sizeof(T) * u64{i}));
        return true;
    }

    u64 null_word(u32 row, u32 count) const {
        const u8 *from = reinterpret_cast<const u8 *>(nulls) + (row >> 3);
        const u32 skipped = row & 7, bytes = (skipped + count + 7) >> 3;   // at most 9
        u64 low = 0;
        if (bytes >= 8) std::memcpy(&low, from, 8);
        else
            for (u32 i = 0; i < bytes; ++i) low |= u64{from[i]} << 8 * i;
        low >>= skipped;
        if (bytes == 9) low |= u64{from[8]} << (64 - skipped);
        return count == 64 ? low : low & ((u64{1} << count) - 1);
    }

    static void whole(RowWriter &writer, u32 column, i64 value) {
        writer.integer(column, value < 0 ? 0 - static_cast<u64>(value) : static_cast<u64>(value), value < 0);
    }

    void whole_or_time(RowWriter &writer, u32 column, i64 value) const {
        if (unit) writer.moment(column, value, *unit);
        else whole(writer, column, value);
    }

    void list_cell(RowWriter &writer, u32 column, const char *p) const {
        const u32 count = width / static_cast<u32>(sizeof(f32));
        if (writer.form(column) == CellForm::value)
            return writer.wrong(column, "a list of " + std::to_string(count) + " numbers");
        writer.open_list(column);
        for (u32 i = 0; i < count; ++i) {
            writer.next_element();
            writer.number(column, load_little<f32>(p + sizeof(f32) * i));
        }
        writer.close_list(column);
    }

    void cells_of_list(RowWriter &writer, u32 column, u32 row) const {
        const u32 from = begin_of(row), to = begin_of(row + 1);
        if (writer.form(column) == CellForm::value)
            return writer.wrong(column, "a list of " + std::to_string(to - from));
        writer.open_list(column);
        for (u32 i = from; i < to; ++i) {
            writer.next_element();
            each->read_cell(writer, column, i);
        }
        writer.close_list(column);
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
        const std::string_view text = text_at(code);
        if (text.empty()) return writer.missing(column);
        if (words[code] < 0) return writer.text(column, text);
        writer.word(column, text, words[code]);
    }
};

}  // namespace st
