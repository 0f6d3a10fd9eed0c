// A number to learn from, side by side with the other numbers: a float64 where one of them is standardised, else a
// float32.
#pragma once
#include "decode/cell_kind.h"
#include "decode/number_kind.h"

namespace st::kinds {

class Number : public NumberKind {
  public:
    explicit Number(const Options &options) : NumberKind(options), is_exact_(options.has("exact")) {
        at_.stand_in = options.number("missing_value");
    }

    const char *expected() const override { return "number"; }
    void place(SlotPlaces &places) override { at_.place = places.take_float(at_.is_double); }

    void number(RowWriter &row, u32 c, f64 value) const override {
        if (!fits(value)) return row.not_finite(c, value);
        put(row, c, value);
    }
    void stand_in(RowWriter &row, u32 c) const override { put(row, c, at_.stand_in); }

    bool takes_spans(CellType type) const override {
        return type <= CellType::boolean || (holds_texts(type) && parses_);
    }
    bool put_span(const ColumnSpan &span, u32 row, RowBlock &rows) const override {
        return at_.is_double ? put_floats<false, f64>(span, row, rows, at_.place, fits_float)
                             : put_floats<false, f32>(span, row, rows, at_.place, fits_float);
    }
    bool put_texts(const std::string_view *texts, RowBlock &rows) const override {
        f64 numbers[BLOCK_ROWS];
        for (u32 i = 0; i < rows.count; ++i)
            if (!read(texts[i], numbers[i])) return false;
        return put_numbers(numbers, rows);
    }
    bool stand_in_span(RowBlock &rows) const override {
        if (at_.is_double) rows.fill(at_.place, at_.stand_in);
        else rows.fill(at_.place, static_cast<f32>(at_.stand_in));
        return true;
    }
    const PlainFloat *plain_float() const override { return &at_; }

    bool is_float() const override { return true; }
    bool narrows() const override { return !is_exact_; }
    bool is_exact() const override { return is_exact_; }

  protected:
    static bool fits(f64 value) { return fits_float(static_cast<f32>(value)); }
    void put(RowWriter &row, u32 c, f64 value) const {
        if (at_.is_double) row.put(c, at_.place, value);
        else row.put(c, at_.place, static_cast<f32>(value));
    }
    bool put_numbers(const f64 *numbers, RowBlock &rows) const {
        ColumnSpan span;
        span.type = CellType::f64;
        span.data = reinterpret_cast<const char *>(numbers);
        return Number::put_span(span, 0, rows);
    }

  private:
    PlainFloat at_;
    const bool is_exact_;
};

// One that transforms read too: its doubles go into a column of cells as well.
class ReadNumber final : public Number {
  public:
    explicit ReadNumber(const Options &options) : Number(options), cell_(options) {}

    void number(RowWriter &row, u32 c, f64 value) const override {
        if (!fits(value)) return row.not_finite(c, value);
        put(row, c, value);
        cell_.put(row, c, value);
    }
    bool put_span(const ColumnSpan &span, u32 row, RowBlock &rows) const override {
        return cell_.put_span(span, row, rows, fits) && put_numbers(cell_.numbers(rows), rows);
    }
    bool put_texts(const std::string_view *texts, RowBlock &rows) const override {
        f64 *const to = cell_.numbers(rows);
        for (u32 i = 0; i < rows.count; ++i)
            if (!read(texts[i], to[i])) return false;
        return put_numbers(to, rows);
    }
    bool stand_in_span(RowBlock &rows) const override {
        cell_.take_missing(rows);
        return Number::stand_in_span(rows);
    }
    const PlainFloat *plain_float() const override { return nullptr; }

  private:
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
