// How kinds put their cells where transforms read them: into a column of cells, a row or a block of rows at a time.
#pragma once
#include <charconv>

#include "decode/column_span.h"
#include "decode/row_writer.h"

namespace st {

// Of the kind's option "cell": which column of cells.
class CellPlace {
  public:
    explicit CellPlace(const Options &options) : cell_(static_cast<u32>(options.get<i64>("cell"))) {}

    // The rows that the block's fill() fills.
    void take_missing(RowBlock &rows) const {
        CellColumn &column = of(rows);
        if (rows.only) return rows.only->each([&](u32 i) { column.take_missing(i); });
        for (u32 i = 0; i < rows.count; ++i) column.take_missing(i);
    }

    u32 place() const { return cell_; }

  protected:
    CellColumn &of(RowBlock &rows) const { return rows.cells->columns[cell_]; }
    CellColumn &of(RowWriter &row) const { return row.cell_row().column(cell_); }
    void give_all(RowBlock &rows) const { std::fill_n(of(rows).given.begin(), rows.count, u8{1}); }

    const u32 cell_;
};

class NumberCells : public CellPlace {
  public:
    using CellPlace::CellPlace;

    void put(RowWriter &row, u32 c, f64 value) const {
        of(row).numbers[row.cell_row().row()] = value;
        row.give(c);
    }
    // The numbers and booleans of a span; false where it has others, or one of them does not fit.
    template <class Fits>
    bool put_span(const ColumnSpan &span, u32 row, RowBlock &rows, Fits fits) const {
        f64 *const to = numbers(rows);
        bool good = true;
        if (span.type == CellType::boolean) {
            for (u32 i = 0; i < rows.count; ++i) to[i] = static_cast<u8>(span.data[row + i]), good &= to[i] <= 1;
            return good;
        }
        return span.each_number(row, rows.count, [&](u32 i, auto value) {
            to[i] = static_cast<f64>(value);
            good &= fits(to[i]);
        }) && good;
    }
    f64 *numbers(RowBlock &rows) const {
        give_all(rows);
        return of(rows).numbers.data();
    }
};

class TimeCells : public CellPlace {
  public:
    using CellPlace::CellPlace;

    void put(RowWriter &row, u32 c, i64 ms) const {
        of(row).times[row.cell_row().row()] = ms;
        row.give(c);
    }
    i64 *times(RowBlock &rows) const {
        give_all(rows);
        return of(rows).times.data();
    }
};

class TextCells : public CellPlace {
  public:
    using CellPlace::CellPlace;

    void put(RowWriter &row, u32 c, std::string_view utf8) const {
        of(row).texts[row.cell_row().row()] = row.cell_row().letters().keep(utf8);
        row.give(c);
    }
    // With the hash that the kind has taken.
    void put(RowWriter &row, u32 c, std::string_view utf8, const TextHash &hash) const {
        put(row, c, utf8);
        of(row).taken[row.cell_row().row()] = hash.value;
        of(row).taken_by = hash.by;
    }
    // All of a block's, whose texts are there.
    const u64 *take_hashes(const TextHasher &by, RowBlock &rows) const {
        CellColumn &column = of(rows);
        for (u32 i = 0; i < rows.count; ++i) column.taken[i] = by(column.texts[i]);
        column.taken_by = by;
        return column.taken.data();
    }
    bool put_texts(const std::string_view *texts, RowBlock &rows) const {
        if (texts != of(rows).texts.data()) std::copy_n(texts, rows.count, of(rows).texts.begin());
        give_all(rows);
        return true;
    }
    const std::string_view *texts(RowBlock &rows) const { return of(rows).texts.data(); }

    // The texts that cells of words or whole numbers are; false where one is none.
    bool texts_of(const ColumnSpan &span, u32 row, RowBlock &rows) const {
        std::string_view *to = of(rows).texts.data();
        if (span.type == CellType::words) {
            for (u32 i = 0; i < rows.count; ++i) {
                const u32 code = load_little<u32>(span.data + 4 * (u64{row} + i));
                if (code >= span.words.size() || span.words[code] == ColumnSpan::BAD) return false;
                to[i] = span.text_at(code);
                if (to[i].empty()) return false;
            }
            return true;
        }
        Letters &letters = rows.cells->letters;
        return span.each_number(row, rows.count, [&](u32 i, auto value) {
            char buffer[24];
            const char *end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
            to[i] = letters.keep({buffer, static_cast<u64>(end - buffer)});
        });
    }
};

}  // namespace st
