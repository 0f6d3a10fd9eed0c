// One column of an Arrow record batch as spans have it: in place where the layouts agree, else in a copy of its own.
#pragma once
#include <memory>

#include "decode/arrow_field.h"
#include "decode/column_span.h"
#include "decode/half.h"

namespace st {

// The texts of a dictionary: as ColumnSpan's words have them.
struct ArrowWords {
    std::string table;   // ends, then letters
    u32 count = 0;
};

// Buffers of one column, in the order of the format: what is there, then as its type says.
struct ArrowBuffers {
    i64 rows = 0, nulls = 0;
    std::string_view there, first, second;
};

struct ArrowColumn : ColumnSpan {
    // What is wrong, or nullptr. `words`: of the field's dictionary.
    const char *bind(const ArrowField &field, const ArrowBuffers &from, u32 row_count, const ArrowWords *words_of) {
        data = nulls = nullptr;
        unit = nullptr;
        rows = row_count;
        if (field.type == ArrowType::null) return nullptr;
        if (const char *problem = bind_nulls(from)) return problem;
        if (field.is_coded) return bind_codes(field, from, words_of);
        switch (field.type) {
            case ArrowType::integer: return bind_numbers(ArrowField::whole(field.bits, field.is_signed), from.first);
            case ArrowType::floating:
                if (field.bits == 16) return bind_halves(from.first);
                return bind_numbers(field.bits == 32   ? CellType::f32
                                    : field.bits == 64 ? CellType::f64
                                                       : CellType{}, from.first);
            case ArrowType::date:
            case ArrowType::timestamp:
                unit = &field.unit;
                return bind_numbers(ArrowField::whole(field.bits, true), from.first);
            case ArrowType::boolean: return bind_booleans(from.first);
            case ArrowType::utf8: return bind_texts<i32>(CellType::text, from);
            case ArrowType::large_utf8: return bind_texts<i64>(CellType::text, from);
            case ArrowType::binary: return bind_texts<i32>(CellType::bytes, from);
            case ArrowType::large_binary: return bind_texts<i64>(CellType::bytes, from);
            default: return "a type that is no column's";
        }
    }

    // Floating numbers of 32 or 64 bits behind each other, `each` a row.
    const char *bind_lists(const ArrowField &of, u32 each, const ArrowBuffers &lists, const ArrowBuffers &from,
                           u32 row_count) {
        data = nulls = nullptr;
        unit = nullptr;
        rows = row_count;
        if (const char *problem = bind_nulls(lists)) return problem;
        const u64 count = u64{rows} * each;
        if (from.nulls != 0 && !all_there(from.there, each)) return "a list with a missing number";
        if (from.first.size() / (of.bits / 8) < count) return FEW_BYTES;
        type = CellType::floats;
        width = each * static_cast<u32>(sizeof(f32));
        data = from.first.data();
        if (of.bits == 32) return nullptr;
        made_.resize(count * sizeof(f32));
        for (u64 i = 0; i < count; ++i) {
            const f32 narrow = static_cast<f32>(load_little<f64>(from.first.data() + 8 * i));
            std::memcpy(made_.data() + 4 * i, &narrow, 4);
        }
        data = made_.data();
        return nullptr;
    }

    // Lists of any length, or of as many cells each as their field says: of those that `within` is bound to.
    const char *bind_ragged(const ArrowField &field, const ArrowBuffers &lists, u32 row_count) {
        data = nulls = nullptr;
        unit = nullptr;
        rows = row_count;
        if (const char *problem = bind_nulls(lists)) return problem;
        type = CellType::list;
        width = 4;
        begin = 0;
        each = within.get();
        data = ends = "";
        // of cells that are all missing the lists are empty: no byte of the record says how many there are
        if (rows == 0 || field.children[0].type == ArrowType::null) return set_ends([](u32) { return 0u; });
        if (field.type == ArrowType::fixed_list) {
            const u32 size = field.list_size;
            if (u64{rows} * size > within->rows) return "lists longer than their cells";
            return set_ends([&](u32 i) { return (i + 1) * size; });
        }
        return field.type == ArrowType::list ? bind_ends<i32>(lists.first, within->rows, "list ends out of order")
                                             : bind_ends<i64>(lists.first, within->rows, "list ends out of order");
    }

    std::unique_ptr<ArrowColumn> within;   // of lists: their cells

    // The texts of a dictionary; a missing one is empty.
    static const char *read_words(const ArrowField &field, const ArrowBuffers &from, ArrowWords &words) {
        if (field.type != ArrowType::utf8 && field.type != ArrowType::large_utf8) return "codes of other than texts";
        if (from.rows < 0 || from.rows > static_cast<i64>(from.first.size())) return FEW_BYTES;
        ArrowColumn texts;
        ArrowField plain;
        plain.type = field.type;
        const char *const problem = texts.bind(plain, from, static_cast<u32>(from.rows), nullptr);
        if (problem) return problem;
        std::string letters;
        words.table.clear();
        words.count = texts.rows;
        for (u32 i = 0; i < words.count; ++i) {
            if (!texts.is_null(i)) letters += texts.text_at(i);
            const u32 end = static_cast<u32>(letters.size());
            words.table.append(reinterpret_cast<const char *>(&end), sizeof end);
        }
        words.table += letters;
        return nullptr;
    }

    u32 rows = 0;

    // Whether its cells are those of the record, as they are, and all there.
    bool is_in_place() const {
        const bool is_number = type <= CellType::u64 || type == CellType::floats;
        return is_number && !nulls && data != made_.data();
    }

  private:
    static constexpr const char *FEW_BYTES = "fewer bytes than rows need";

    // Arrow has a 1 where a cell is there.
    const char *bind_nulls(const ArrowBuffers &from) {
        if (from.rows != rows) return "another number of rows than its batch";
        if (from.nulls == 0 || rows == 0) return nullptr;
        const u64 size = (u64{rows} + 7) / 8;
        if (from.there.size() < size) return FEW_BYTES;
        nulls_.resize(size);
        for (u64 i = 0; i < size; ++i) nulls_[i] = static_cast<char>(~from.there[i]);
        nulls = nulls_.data();
        return nullptr;
    }

    // Whether of the lists that are there all numbers are.
    bool all_there(std::string_view bits, u32 each) const {
        if (bits.size() < (u64{rows} * each + 7) / 8) return false;
        for (u32 row = 0; row < rows; ++row)
            for (u64 i = u64{row} * each; !is_null(row) && i < (u64{row} + 1) * each; ++i)
                if (!(bits[i >> 3] >> (i & 7) & 1)) return false;
        return true;
    }

    const char *bind_numbers(CellType as, std::string_view cells) {
        if (as == CellType{}) return "a type that is no column's";
        type = as;
        width = static_cast<u32>(bytes_of(as));
        if (cells.size() / width < rows) return FEW_BYTES;
        data = letters = rows ? cells.data() : "";
        return nullptr;
    }

    const char *bind_halves(std::string_view cells) {
        if (cells.size() / 2 < rows) return FEW_BYTES;
        made_.resize(u64{rows} * 4);
        for (u32 i = 0; i < rows; ++i) {
            const f32 value = half_number(load_little<u16>(cells.data() + 2 * u64{i}));
            std::memcpy(made_.data() + 4 * u64{i}, &value, 4);
        }
        return bind_numbers(CellType::f32, made_);
    }

    const char *bind_booleans(std::string_view bits) {
        if (bits.size() < (u64{rows} + 7) / 8) return FEW_BYTES;
        made_.resize(rows);
        for (u32 i = 0; i < rows; ++i) made_[i] = static_cast<char>(bits[i >> 3] >> (i & 7) & 1);
        return bind_numbers(CellType::boolean, made_);
    }

    template <class Offset>
    const char *bind_texts(CellType as, const ArrowBuffers &from) {
        type = as;
        width = 4;
        data = ends = letters = "";
        begin = 0;
        entries = rows;
        if (rows == 0) return nullptr;
        const char *const problem = bind_ends<Offset>(from.first, from.second.size(), "text ends out of order");
        if (problem) return problem;
        letters = from.second.data();
        return nullptr;
    }

    // `end_of` each row.
    template <class End>
    const char *set_ends(End end_of) {
        made_.resize(u64{rows} * 4);
        for (u32 i = 0; i < rows; ++i) {
            const u32 end = end_of(i);
            std::memcpy(made_.data() + 4 * u64{i}, &end, 4);
        }
        data = ends = made_.data();
        return nullptr;
    }

    // Of rows that lie behind each other in something of `size`: in place where they can be.
    template <class Offset>
    const char *bind_ends(std::string_view offsets, u64 size, const char *out_of_order) {
        if (offsets.size() / sizeof(Offset) < u64{rows} + 1) return FEW_BYTES;
        const auto offset = [&](u32 i) { return load_little<Offset>(offsets.data() + sizeof(Offset) * u64{i}); };
        Offset last = offset(0);
        bool ordered = last >= 0;
        for (u32 i = 1; i <= rows; ++i) {
            const Offset next = offset(i);
            ordered &= next >= last;
            last = next;
        }
        if (!ordered || static_cast<u64>(last) > size) return out_of_order;
        begin = static_cast<u32>(offset(0));
        data = ends = offsets.data() + sizeof(Offset);
        if constexpr (sizeof(Offset) == 4) return nullptr;
        return set_ends([&](u32 i) { return static_cast<u32>(offset(i + 1)); });
    }

    const char *bind_codes(const ArrowField &field, const ArrowBuffers &from, const ArrowWords *known) {
        if (!known) return "codes without their dictionary";
        const CellType as = ArrowField::whole(field.code_bits, field.code_signed);
        if (const char *problem = bind_numbers(as, from.first)) return problem;
        if (as != CellType::i32 && as != CellType::u32) {
            made_.resize(u64{rows} * 4);
            each_number(0, rows, [&](u32 i, auto given) {
                const u64 code = static_cast<u64>(given);   // of one below 0 more than there are words
                const u32 narrow = code > 0xffffffff ? 0xffffffff : static_cast<u32>(code);
                std::memcpy(made_.data() + 4 * u64{i}, &narrow, 4);
            });
            data = made_.data();
        }
        type = CellType::words;
        width = 4;
        table_ = known->table;
        return set_texts(table_.data(), table_.size(), known->count);
    }

    std::string nulls_, made_, table_;
};

}  // namespace st
