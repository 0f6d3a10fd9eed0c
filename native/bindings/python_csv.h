// Lines of CSV text → a RowTable: of files, where a column of numbers holds numbers, and a time may be ISO 8601's.
#pragma once
#include <algorithm>
#include <vector>

#include "decode/csv_text.h"
#include "decode/decimal_text.h"
#include "decode/missing_words.h"
#include "decode/row_table.h"
#include "decode/time_text.h"

namespace st {

// What a cell of a line is read as.
enum class CsvCell : u8 { text, number, time };   // time: a number, or ISO 8601 (UTC where it tells no zone) → ms

class CsvTable {
  public:
    struct Field {
        i64 column;   // of the table; below 0: passed over
        CsvCell is;
    };
    struct Lines {
        u64 rows, bytes;
    };

    CsvTable(char delimiter, char quote, bool skip_space) : csv_(delimiter, quote, skip_space), delimiter_(delimiter) {}

    // How many whole lines the text begins with, and where they end. `last`: nothing comes behind the text.
    Lines whole_lines(std::string_view text, u64 most, bool last) {
        csv_.load(text.data(), text.size());
        u64 rows = 0;
        const char *p = csv_.behind_breaks(csv_.begin()), *behind = p;
        while (rows < most && p < csv_.end()) {
            if (!(p = pass_line(p))) {
                if (last) ++rows, behind = csv_.end();   // it is read, and its mistake told
                break;
            }
            if (p == csv_.end() && !last) break;
            p = behind = csv_.behind_breaks(p);
            ++rows;
        }
        return {rows, text.size() - static_cast<u64>(csv_.end() - behind)};
    }

    // The lines of such a text, into the table, which has room for as many rows. Throws CellMistake.
    void read(std::string_view text, const std::vector<Field> &order, RowTable &table) {
        csv_.load(text.data(), text.size());
        const char *p = csv_.behind_breaks(csv_.begin());
        for (u64 row = 0; row < table.rows && p < csv_.end(); ++row) {
            u64 cells = 0;
            for (;; ++p) {
                std::string_view cell;
                const char *bad;
                const bool known = cells < order.size() && order[cells].column >= 0;
                if (known && order[cells].is == CsvCell::number) {
                    if (const char *behind = read_at_a_glance(p, table, static_cast<u32>(order[cells].column), row)) {
                        p = behind, ++cells;
                        if (*p != delimiter_) break;
                        continue;
                    }
                }
                p = csv_.cell(p, cell, bad);
                if (!p) throw CellMistake{NO_CELL, row, "the closing quote of a cell", "the file's end"};
                if (known) {
                    const u32 column = static_cast<u32>(order[cells].column);
                    if (bad) throw CellMistake{column, row, "a cell of CSV", bad};
                    put(cell, order[cells].is, table, column, row);
                }
                ++cells;
                if (*p != delimiter_) break;
            }
            if (cells != order.size())
                throw CellMistake{NO_CELL, row, std::to_string(order.size()) + " cells", std::to_string(cells)};
            p = csv_.behind_breaks(p);
        }
    }

    static constexpr u32 NO_CELL = ~u32{0};   // of a mistake: the line's

  private:
    const char *pass_line(const char *p) {
        for (;; ++p) {
            std::string_view cell;
            const char *bad;
            p = csv_.cell(p, cell, bad);
            if (!p || *p != delimiter_) return p;
        }
    }

    // The usual number, and what ends it; nullptr where put() has to look.
    const char *read_at_a_glance(const char *p, RowTable &table, u32 column, u64 row) const {
        f64 value;
        const char *const behind = parse_at_a_glance(p, value, csv_.stop());
        if (!behind) return nullptr;
        table.columns[column].given = true;
        Cell &to = table.cell(column, row);
        const i64 whole = static_cast<i64>(value);   // of at most 19 digits, a fraction among them
        const bool is_whole = static_cast<f64>(whole) == value && (whole != 0 || *p != '-');
        to.kind = is_whole ? CellKind::integer : CellKind::number;
        if (is_whole) to.magnitude = whole < 0 ? 0 - static_cast<u64>(whole) : static_cast<u64>(whole);
        else to.number = value;
        to.flag = is_whole && whole < 0;
        return behind;
    }

    void put(std::string_view text, CsvCell is, RowTable &table, u32 column, u64 row) const {
        table.columns[column].given = true;
        Cell &to = table.cell(column, row);
        if (text.empty()) return;
        if (is != CsvCell::text && read_number(text, to)) return;
        i64 ms;
        if (is == CsvCell::time && utc_.parse(without_spaces(text), ms)) {
            to.kind = CellKind::integer;
            to.flag = ms < 0;
            to.magnitude = ms < 0 ? 0 - static_cast<u64>(ms) : static_cast<u64>(ms);
            return;
        }
        const Kind *const kind = table.columns[column].plan.kind.get();
        if (kind && kind->is_missing_word(text)) return;
        to.kind = CellKind::text;
        to.letters_at = table.letters.size();
        to.size = static_cast<u32>(text.size());
        table.letters += text;
    }

    static bool read_number(std::string_view text, Cell &to) {
        bool negative = false;
        u64 magnitude;
        f64 value;
        if (parse_whole(text, magnitude, negative)) {
            to.kind = CellKind::integer;
            to.magnitude = magnitude;
            to.flag = negative && magnitude;
        } else if (parse_decimal(text, value) && std::isfinite(value)) {
            to.kind = CellKind::number;
            to.number = value;
        } else if (is_word(text, "true") || is_word(text, "false")) {
            to.kind = CellKind::integer;
            to.magnitude = is_word(text, "true");
            to.flag = false;
        } else {
            return false;
        }
        return true;
    }

    static bool is_word(std::string_view text, std::string_view lower) {
        return text.size() == lower.size() &&
               std::equal(text.begin(), text.end(), lower.begin(), [](char a, char b) { return (a | 0x20) == b; });
    }

    CsvText csv_;
    char delimiter_;
    TimeText utc_{"iso8601", {-(i64{1} << 62), 0}};   // of texts without a zone
};

}  // namespace st
