// A number to learn from: a finite float32, side by side with the other numbers.
#pragma once
#include "decode/cell_kind.h"
#include "decode/number_kind.h"

namespace st::kinds {

class Number : public NumberKind {
  public:
    explicit Number(const Options &options) : NumberKind(options) {
        at_.stand_in = static_cast<f32>(options.number("missing_value"));
    }

    const char *expected() const override { return "number"; }
    void place(SlotPlaces &places) override { at_.place = places.take(sizeof(f32)); }

    void number(RowWriter &row, u32 c, f64 value) const override {
        const f32 rounded = static_cast<f32>(value);
        if (!fits_float(rounded)) return row.not_finite(c, value);
        row.put(c, at_.place, rounded);
    }
    void stand_in(RowWriter &row, u32 c) const override { row.put(c, at_.place, at_.stand_in); }

    bool takes_spans(CellType type) const override {
        return type <= CellType::boolean || (holds_texts(type) && parses_);
    }
    bool put_span(const ColumnSpan &span, u32 row, RowBlock &rows) const override {
        return put_floats(span, row, rows, at_.place, [](f32 value) { return fits_float(value); });
    }
    bool put_texts(const std::string_view *texts, RowBlock &rows) const override {
        return put_decimals(texts, rows, at_.place, rounds_to_float);
    }
    bool stand_in_span(RowBlock &rows) const override {
        rows.fill(at_.place, at_.stand_in);
        return true;
    }
    const PlainFloat *plain_float() const override { return &at_; }

    bool is_float() const override { return true; }
    bool narrows() const override { return true; }

  protected:
    PlainFloat at_;
};

// One of which transforms ask whether it is there: a block's float32 go into a column of cells as well, a row's is read
// where it lies.
class ReadNumber final : public Number {
  public:
    explicit ReadNumber(const Options &options) : Number(options), cell_(options) {}

    bool put_span(const ColumnSpan &span, u32 row, RowBlock &rows) const override {
        return Number::put_span(span, row, rows) && take_slot(rows);
    }
    bool put_texts(const std::string_view *texts, RowBlock &rows) const override {
        return Number::put_texts(texts, rows) && take_slot(rows);
    }
    bool stand_in_span(RowBlock &rows) const override {
        cell_.take_missing(rows);
        return Number::stand_in_span(rows);
    }
    const PlainFloat *plain_float() const override { return nullptr; }
    const PlainFloat *row_float() const override { return &at_; }

  private:
    bool take_slot(RowBlock &rows) const {
        cell_.take_floats(rows, at_.place);
        return true;
    }

    NumberCells cell_;
};

// In another block than those that the model learns from as they are.
class NumberApart final : public Number {
  public:
    using Number::Number;
    const PlainFloat *plain_float() const override { return nullptr; }
};

inline std::unique_ptr<Kind> number(const std::string &, const Options &options) {
    if (options.has("apart")) return std::make_unique<NumberApart>(options);
    if (options.has("cell")) return std::make_unique<ReadNumber>(options);
    return std::make_unique<Number>(options);
}

}  // namespace st::kinds
