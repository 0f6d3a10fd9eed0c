// A cell of a table on its way into a record by a schema, as whatever it is, and what its column counts where it is a
// time.
#pragma once
#include "decode/row_table.h"

namespace st {

struct GivenCell {
    CellKind kind = CellKind::missing;
    bool flag = false;
    u64 magnitude = 0;
    f64 real = 0;
    std::string_view letters = {};
    const TimeUnit *unit = nullptr;
    const Kind *of_kind = nullptr;
    const RowTable *table = nullptr;
    const Cell *elements = nullptr;   // of a list

    static GivenCell of(const RowTable &table, u64 row, u32 column) {
        GivenCell given;
        const Kind *kind = table.columns[column].plan.kind.get();
        given.unit = kind ? kind->time_unit() : nullptr;
        given.of_kind = kind;
        table.read(column, row, given);
        if (given.kind == CellKind::text && given.letters.empty() && kind) given.missing();
        return given;
    }

    void list(const RowTable &of, const Cell &cell) { kind = CellKind::list, table = &of, elements = &cell; }
    void missing() { kind = CellKind::missing; }
    void boolean(bool value) { kind = CellKind::boolean, flag = value; }
    void integer(u64 value, bool negative) {
        kind = CellKind::integer, flag = negative, magnitude = value;
        real = negative ? -static_cast<f64>(value) : static_cast<f64>(value);
    }
    void long_integer(f64 rounded, std::string_view digits) {
        kind = CellKind::long_integer, real = rounded, letters = digits;
    }
    void number(f64 value) { kind = CellKind::number, real = value; }
    void text(std::string_view value) { kind = CellKind::text, letters = value; }
    void bytes(std::string_view value) { kind = CellKind::bytes, letters = value; }

    bool is_missing() const { return kind == CellKind::missing; }

    // The whole number that it is or stands for, or none.
    bool whole(__int128 &value) const {
        if (kind == CellKind::boolean) return value = flag, true;
        if (kind == CellKind::integer) return value = flag ? -static_cast<__int128>(magnitude) : magnitude, true;
        if (kind == CellKind::long_integer) {
            u64 large = 0;
            const auto [end, problem] = std::from_chars(letters.data(), letters.data() + letters.size(), large);
            return value = large, problem == std::errc() && end == letters.data() + letters.size();
        }
        if (kind != CellKind::number || !is_exact_whole(real)) return false;
        return value = static_cast<__int128>(real), true;
    }

    std::string shown() const {
        switch (kind) {
            case CellKind::missing: return "nothing";
            case CellKind::list: return "a list";
            case CellKind::bytes: return "bytes";
            case CellKind::boolean: return flag ? "true" : "false";
            case CellKind::text: return quoted(letters);
            case CellKind::number: return shown_number(real);
            default: return digits();
        }
    }
    std::string digits() const {
        char buffer[24];
        return std::string(kind == CellKind::integer ? integer_text(magnitude, flag, buffer) : letters);
    }
    // The text that it stands for.
    std::string words() const {
        if (kind == CellKind::text) return std::string(letters);
        if (kind == CellKind::number && is_exact_whole(real)) return std::to_string(static_cast<i64>(real));
        std::string text = shown();
        if (kind == CellKind::number) put_point(text, of_kind);
        return text;
    }
};

}  // namespace st
