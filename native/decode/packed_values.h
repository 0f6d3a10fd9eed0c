// One column of a table as the packed wire has it: which type fits its cells, and their bytes.
#pragma once
#include <cstring>
#include <limits>
#include <utility>

#include "decode/packed_texts.h"
#include "decode/row_table.h"

namespace st {

// The values of a column's picked rows and the bits of those that are missing. Reused from column to column.
class PackedValues {
  public:
    CellType type = CellType::f32;
    std::string data;     // encoded
    std::string nulls;    // empty: none is missing
    u32 more = 0;         // of the type: what its entry says
    CellType of_list{};   // what a list's cells are

    // Throws CellMistake for what no packed column of its kind can hold.
    // `hashed`: a category's texts become their hashes.
    void take(const RowTable &table, u32 column, const PickedRows &rows, bool hashed = true) {
        const RowTable::Column &given = table.columns[column];
        table_ = &table, column_ = column, rows_ = &rows;
        nulls.clear();
        more = 0;
        of_list = {};
        const Kind *const kind = given.plan.kind.get();
        const TextHasher *const hasher = hashed && kind ? kind->hasher() : nullptr;
        if (kind && kind->form() == CellForm::list)
            return kind->is_float() ? take_floats(given) : take_lists(hasher);
        if (hasher) return take_hashes(*hasher);
        becomes_float_ = kind && kind->is_float();
        is_exact_ = kind && kind->is_exact();
        keeps_small_ = becomes_float_ && !is_exact_ && !kind->narrows();
        if (becomes_float_ && (given.is_view ? take_view(given) : take_numbers())) return;
        Kinds kinds;
        for (u64 i = 0; i < rows.count; ++i) table.read(column, rows[i], kinds);
        if (kinds.any(BYTES)) return take_bytes();
        if (kinds.any(TEXT) || (kind && kind->hasher() && kinds.seen)) return take_texts(given.plan);
        const bool loses = (keeps_small_ && kinds.vanishes) || (is_exact_ && kinds.rounds);
        if ((becomes_float_ && !loses) || kinds.seen == 0) return take_all<f32>(CellType::f32);
        if (kinds.seen == BOOLEAN) return take_all<u8>(CellType::boolean);
        if (kinds.any(FRACTION) || kinds.large) return take_all<f64>(CellType::f64);
        return take_all<i64>(CellType::i64);
    }

  private:
    static constexpr u32 BOOLEAN = 1, INTEGER = 2, FRACTION = 4, TEXT = 8, BYTES = 16;

    // What stands in a column.
    struct Kinds {
        u32 seen = 0;
        bool large = false;      // an integer that i64 does not hold
        bool vanishes = false;   // a number that float32 makes 0
        bool rounds = false;     // one that float32 does not hold
        bool any(u32 kinds) const { return seen & kinds; }
        void missing() {}
        void boolean(bool) { seen |= BOOLEAN; }
        void integer(u64 magnitude, bool) {
            seen |= INTEGER, large |= magnitude > u64{1} << 62, round(static_cast<f64>(magnitude));
        }
        void long_integer(f64 rounded, std::string_view) { seen |= FRACTION, round(rounded); }
        void number(f64 value) {
            seen |= FRACTION, vanishes |= value != 0 && static_cast<f32>(value) == 0, round(value);
        }
        void round(f64 value) { rounds |= value == value && static_cast<f64>(static_cast<f32>(value)) != value; }
        void text(std::string_view) { seen |= TEXT; }
        void bytes(std::string_view) { seen |= BYTES; }
    };

    // Cells as one number each.
    template <class T>
    struct Numbers {
        PackedValues &self;
        T *to;
        u64 i = 0;

        void put(T value) { to[i] = value; }
        void missing() { self.null(i); }
        void boolean(bool value) { put(static_cast<T>(value)); }
        void integer(u64 magnitude, bool negative) {
            if constexpr (std::is_same_v<T, i64>) put(static_cast<i64>(negative ? 0 - magnitude : magnitude));
            else put(static_cast<T>(integer_number(magnitude, negative)));
        }
        void long_integer(f64 rounded, std::string_view) { number(rounded); }
        void number(f64 value) { put(static_cast<T>(value)); }
        void text(std::string_view) {}
    };

    template <class T>
    void take_all(CellType as) {
        type = as;
        data.assign(rows_->count * sizeof(T), 0);
        Numbers<T> to{*this, reinterpret_cast<T *>(data.data())};
        for (; to.i < rows_->count; ++to.i) table_->read(column_, (*rows_)[to.i], to);
    }

    // The hash of each cell's text, or of each in a list; without a hasher the text.
    struct Hashes {
        PackedValues &self;
        const TextHasher *hasher;
        bool of_lists = false;
        u64 i = 0, count = 0;    // the row; hashes that lists have so far
        bool in_list = false;

        void put(u64 hash) {
            const u64 size = hasher->bits / 8, lists = 4 * self.rows_->count;
            if (of_lists) self.data.resize(lists + size * (count + 1));
            std::memcpy(self.data.data() + (of_lists ? lists + size * count++ : size * i), &hash, size);
        }
        void text(std::string_view text) {
            if (text.empty()) return missing();
            if (of_lists && !in_list) self.wrong(i, quoted(text));
            if (hasher) return put((*hasher)(text));
            self.texts_.add(text), ++count;
        }
        void missing() {   // in a list it is none
            if (!in_list) self.null(i);
        }
        void boolean(bool value) { text(value ? "true" : "false"); }
        void integer(u64 magnitude, bool negative) {
            char buffer[24];
            text(integer_text(magnitude, negative, buffer));
        }
        void long_integer(f64, std::string_view digits) { text(digits); }
        void number(f64 value) {
            if (!is_exact_whole(value)) self.wrong(i, shown_number(value));
            integer(static_cast<u64>(std::abs(value)), value < 0);
        }
        void hashed(const TextHash &hash) {
            if (!hasher) self.wrong(i, "a hash, not its text");
            if (hash.by.bits != hasher->bits || hash.by.seed != hasher->seed)
                self.wrong(i, "the hash of another column");
            put(hash.value);
        }
        void list(const RowTable &table, const Cell &cell) {
            if (!of_lists || in_list) self.wrong(i, "a list of " + std::to_string(cell.size));
            in_list = true;
            table.each_element(cell, *this, [](u32) {});
            in_list = false;
        }
    };

    void take_hashes(const TextHasher &hasher) {
        type = hasher.bits == 64 ? CellType::hash64 : CellType::hash32;
        more = hasher.seed;
        data.assign(rows_->count * hasher.bits / 8, 0);
        Hashes to{*this, &hasher};
        for (; to.i < rows_->count; ++to.i) table_->read(column_, (*rows_)[to.i], to);
    }

    void take_lists(const TextHasher *hasher) {
        type = CellType::list;
        of_list = !hasher ? CellType::text : hasher->bits == 64 ? CellType::hash64 : CellType::hash32;
        more = hasher ? hasher->seed : 0;
        texts_.clear();
        data.assign(rows_->count * 4, 0);   // ends, and behind them all hashes or texts
        const RowTable::Column &given = table_->columns[column_];
        Hashes to{*this, hasher, true};
        for (; to.i < rows_->count; ++to.i) {
            to.in_list = given.is_view;
            if (given.is_view) given.view.each((*rows_)[to.i], to);
            else table_->read(column_, (*rows_)[to.i], to);
            const u32 end = static_cast<u32>(to.count);
            std::memcpy(data.data() + 4 * to.i, &end, sizeof end);
        }
        if (!hasher) texts_.put_texts(data);
    }

    // Bytes as they are, of all rows.
    struct Bytes {
        PackedValues &self;
        std::vector<u32> ends = {};
        std::string all = {};

        void bytes(std::string_view raw) { all += raw, ends.push_back(static_cast<u32>(all.size())); }
        void missing() { self.null(ends.size()), bytes({}); }
        void text(std::string_view text) { self.wrong(ends.size(), "text beside bytes, " + quoted(text)); }
        void boolean(bool value) { self.wrong(ends.size(), value ? "true" : "false"); }
        void integer(u64 magnitude, bool negative) { number(integer_number(magnitude, negative)); }
        void long_integer(f64 rounded, std::string_view) { number(rounded); }
        void number(f64 value) { self.wrong(ends.size(), shown_number(value)); }
    };

    void take_bytes() {
        type = CellType::bytes;
        Bytes to{*this};
        for (u64 i = 0; i < rows_->count; ++i) table_->read(column_, (*rows_)[i], to);
        data.clear();
        PackedTexts::append(data, to.ends);
        data += to.all;
    }

    // A list's numbers behind each other, of each row as many as of the first.
    struct Floats {
        PackedValues &self;
        u64 i = 0;
        bool known = false, in_list = false;

        void missing() {
            if (!in_list) self.null(i);
            else self.wrong(i, "a list with a missing number");
        }
        void boolean(bool value) { number(value); }
        void integer(u64 magnitude, bool negative) { number(integer_number(magnitude, negative)); }
        void long_integer(f64 rounded, std::string_view) { number(rounded); }
        void text(std::string_view text) { self.wrong(i, quoted(text)); }
        void number(f64 value) {
            if (!in_list) self.wrong(i, shown_number(value));
            const f32 narrow = static_cast<f32>(value);
            self.data.append(reinterpret_cast<const char *>(&narrow), sizeof narrow);
        }
        void list(const RowTable &table, const Cell &cell) {
            if (in_list || (known && cell.size != self.more))
                self.wrong(i, "a list of " + std::to_string(cell.size));
            if (!known) self.more = cell.size, known = true;
            in_list = true;
            table.each_element(cell, *this, [](u32) {});
            in_list = false;
        }
    };

    void take_floats(const RowTable::Column &given) {
        type = CellType::floats;
        data.clear();
        if (given.is_view) return take_matrix(given.view);
        Floats to{*this};
        for (; to.i < rows_->count; ++to.i) table_->read(column_, (*rows_)[to.i], to);
        if (nulls.empty()) return;
        std::string all;   // with room for those that are missing
        for (u64 i = 0, from = 0; i < rows_->count; ++i) {
            const bool gone = nulls[i >> 3] >> (i & 7) & 1;
            all.append(gone ? std::string(4 * more, 0) : data.substr(from, 4 * more));
            from += gone ? 0 : 4 * more;
        }
        data = std::move(all);
    }

    void take_matrix(const ColumnView &view) {
        more = view.elements;
        data.reserve(rows_->count * more * sizeof(f32));
        const auto plain = static_cast<i64>(sizeof(f32));
        for (u64 i = 0; i < rows_->count; ++i) {
            const char *const from = view.data + view.stride * static_cast<i64>((*rows_)[i]);
            if (view.type == CellType::f32 && view.element_stride == plain) {
                data.append(from, more * sizeof(f32));
                continue;
            }
            Floats to{*this, i};
            to.in_list = true;
            view.each((*rows_)[i], to);
        }
    }

    // Cells that are numbers or missing, in one pass; false where one is another.
    bool take_numbers() {
        type = CellType::f32;
        data.assign(rows_->count * 4, 0);
        const Cell *const cells = table_->cells.data() + column_ * table_->rows;
        bool odd = rows_->count == 0;
        for (u64 i = 0; i < rows_->count && !odd; ++i) {
            const Cell &cell = cells[(*rows_)[i]];
            if (cell.kind == CellKind::missing) {
                null(i);
                continue;
            }
            const f32 narrow = static_cast<f32>(cell.number);
            odd = cell.kind != CellKind::number || (keeps_small_ && cell.number != 0 && narrow == 0) ||
                  (is_exact_ && static_cast<f64>(narrow) != cell.number);
            std::memcpy(data.data() + 4 * i, &narrow, 4);
        }
        if (odd) nulls.clear();
        return !odd;
    }

    // Whole arrays at once; false where a cell has to be looked at by itself.
    bool take_view(const RowTable::Column &given) {
        if (rows_->chosen) return false;
        const ColumnView &view = given.view;
        const char *from = view.data + view.stride * static_cast<i64>(rows_->first);
        switch (view.type) {
            case CellType::f32: return copy<f32>(from, view.stride);
            case CellType::f64: return copy<f64>(from, view.stride);
            case CellType::i32: return copy<i32>(from, view.stride);
            case CellType::i64: return copy<i64>(from, view.stride);
            case CellType::i8:
            case CellType::u8: return !keeps_small_ && copy_bytes(from, view);
            default: return false;
        }
    }

    bool copy_bytes(const char *from, const ColumnView &view) {
        type = view.type;
        data.resize(rows_->count);
        for (u64 i = 0; i < rows_->count; ++i) data[i] = from[view.stride * static_cast<i64>(i)];
        return true;
    }

    template <class T>
    bool copy(const char *from, i64 stride) {
        return stride == sizeof(T) ? copy_by<T>(from, sizeof(T)) : copy_by<T>(from, stride);
    }

    template <class T>
    [[gnu::always_inline]] bool copy_by(const char *from, i64 stride) {
        type = CellType::f32;
        data.resize(rows_->count * 4);
        char *to = data.data();
        u32 odd = 0;
        const bool keeps_small = keeps_small_, is_exact = is_exact_;
        for (u64 i = 0; i < rows_->count; ++i) {
            const T value = load_little<T>(from + stride * static_cast<i64>(i));
            odd |= !(static_cast<f64>(value) - static_cast<f64>(value) == 0);   // NaN and infinity
            const f32 narrow = static_cast<f32>(static_cast<f64>(value));
            if constexpr (std::is_same_v<T, f64>) odd |= keeps_small & (value != 0) & (narrow == 0);
            odd |= is_exact & (static_cast<f64>(narrow) != static_cast<f64>(value));
            std::memcpy(to + 4 * i, &narrow, 4);
        }
        return !odd;
    }

    // Cells as text: words and codes where words repeat, else one text a row.
    struct Texts {
        PackedValues &self;
        const PlanColumn &plan;
        u64 i = 0;

        void missing() { self.null(i), self.texts_.add(""); }
        void text(std::string_view text) { self.texts_.add(text); }
        void boolean(bool value) { of_word(value ? "true" : "false"); }
        void integer(u64 magnitude, bool negative) {
            char buffer[24];
            of_word(integer_text(magnitude, negative, buffer));
        }
        void long_integer(f64, std::string_view digits) { of_word(digits); }
        void number(f64 value) {
            if (!is_exact_whole(value)) return fraction(value);
            integer(static_cast<u64>(std::abs(value)), value < 0);
        }
        void fraction(f64 value) {
            if (!plan.kind || !plan.kind->is_float()) self.wrong(i, shown_number(value));
            char buffer[32];
            const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, 17).ptr;
            std::string digits(buffer, end);
            put_point(digits, plan.kind.get());
            of_word(digits);
        }
        // What is no text in a column of text: its words, where the column takes words.
        void of_word(std::string_view word) { self.texts_.add(word); }
    };

    void take_texts(const PlanColumn &plan) {
        if (plan.kind && plan.kind->refuses_text()) refuse_text(plan);
        texts_.clear();
        Texts to{*this, plan};
        for (; to.i < rows_->count; ++to.i) table_->read(column_, (*rows_)[to.i], to);
        type = texts_.encode(data, more, [this](u64 i) { null(i); });
    }

    // The first text in a column of numbers.
    void refuse_text(const PlanColumn &plan) {
        struct First {
            std::string got;
            bool found = false;
            void missing() {}
            void boolean(bool) {}
            void integer(u64, bool) {}
            void long_integer(f64, std::string_view) {}
            void number(f64) {}
            void text(std::string_view text) { found = true, got = '"' + shown(text) + '"'; }
        } first;
        for (u64 i = 0; i < rows_->count; ++i) {
            table_->read(column_, (*rows_)[i], first);
            if (first.found) throw CellMistake{column_, (*rows_)[i], plan.expected(), first.got};
        }
    }

    [[noreturn]] void wrong(u64 i, std::string got) const {
        const u64 row = (*rows_)[i];
        throw CellMistake{column_, row, table_->columns[column_].plan.expected(), std::move(got)};
    }

    void null(u64 i) {
        if (nulls.empty()) nulls.assign((rows_->count + 7) / 8, 0);
        nulls[i >> 3] = static_cast<char>(nulls[i >> 3] | 1 << (i & 7));
    }

    const RowTable *table_ = nullptr;
    u32 column_ = 0;
    const PickedRows *rows_ = nullptr;
    bool becomes_float_ = false;
    bool is_exact_ = false;      // float32 in the place of a number is that number
    bool keeps_small_ = false;   // its kind looks at the number itself, which is not 0 where float32 makes it so
    PackedTexts texts_;
};

}  // namespace st
