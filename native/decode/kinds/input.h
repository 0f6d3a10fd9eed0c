// What transforms read and the model does not: a number as a double, a text, a time; in no block.
#pragma once
#include "decode/canonical_kind.h"
#include "decode/cell_kind.h"
#include "decode/kinds/time.h"
#include "decode/number_kind.h"

namespace st::kinds {

class InputNumber final : public NumberKind {
  public:
    explicit InputNumber(const Options &options) : NumberKind(options), cell_(options) {}

    const char *expected() const override { return "number"; }
    void place(SlotPlaces &) override {}
    void number(RowWriter &row, u32 c, f64 value) const override {
        if (number_or_none(value) != value) return row.wrong(c, shown_number(value));
        cell_.put(row, c, value);
    }
    void stand_in(RowWriter &, u32) const override {}

    bool takes_spans(CellType type) const override {
        return type <= CellType::boolean || (holds_texts(type) && parses_);
    }
    bool put_span(const ColumnSpan &span, u32 row, RowBlock &rows) const override {
        return cell_.put_span(span, row, rows, [](f64 value) { return number_or_none(value) == value; });
    }
    bool put_texts(const std::string_view *texts, RowBlock &rows) const override {
        f64 *to = cell_.numbers(rows);
        for (u32 i = 0; i < rows.count; ++i)
            if (!read(texts[i], to[i]) || number_or_none(to[i]) != to[i]) return false;
        return true;
    }
    bool stand_in_span(RowBlock &rows) const override {
        cell_.take_missing(rows);
        return true;
    }

  private:
    NumberCells cell_;
};

// Whole numbers and booleans as their text.
class InputText final : public Kind {
  public:
    explicit InputText(const Options &options) : cell_(options) {}

    const char *expected() const override { return "text, integer or boolean"; }
    void place(SlotPlaces &) override {}
    void number(RowWriter &row, u32 c, f64 value) const override {
        if (!is_exact_whole(value)) return row.wrong(c, shown_number(value));
        integer(row, c, static_cast<u64>(std::abs(value)), value < 0);
    }
    void integer(RowWriter &row, u32 c, u64 magnitude, bool negative) const override {
        char buffer[24];
        text(row, c, integer_text(magnitude, negative, buffer));
    }
    void long_integer(RowWriter &row, u32 c, f64, std::string_view digits) const override { text(row, c, digits); }
    void boolean(RowWriter &row, u32 c, bool value) const override { text(row, c, value ? "true" : "false"); }
    void text(RowWriter &row, u32 c, std::string_view utf8) const override { cell_.put(row, c, utf8); }
    void stand_in(RowWriter &, u32) const override {}

    bool takes_spans(CellType type) const override {
        return !is_hash(type) && (type >= CellType::text || (type >= CellType::i8 && type <= CellType::u64));
    }
    bool put_span(const ColumnSpan &span, u32 row, RowBlock &rows) const override {
        return cell_.texts_of(span, row, rows) && cell_.put_texts(cell_.texts(rows), rows);
    }
    bool put_texts(const std::string_view *texts, RowBlock &rows) const override {
        return cell_.put_texts(texts, rows);
    }
    bool stand_in_span(RowBlock &rows) const override {
        cell_.take_missing(rows);
        return true;
    }
    bool is_text() const override { return true; }

  private:
    TextCells cell_;
};

inline std::unique_ptr<Kind> input(const std::string &column, const Options &options) {
    const Holds holds = holds_of(options.get<std::string>("holds"));
    if (holds == Holds::number) return std::make_unique<InputNumber>(options);
    if (holds == Holds::time) return std::make_unique<ReadTime>(column, options, false);
    return canonical(std::make_unique<InputText>(options), options);
}

}  // namespace st::kinds
