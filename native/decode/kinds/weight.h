// How much a row counts: a finite float32 not below 0.
#pragma once
#include "decode/number_kind.h"

namespace st::kinds {

class Weight final : public NumberKind {
  public:
    explicit Weight(const Options &options)
        : NumberKind(options), missing_(static_cast<f32>(options.number("missing_value"))) {}

    const char *expected() const override { return "number not below 0"; }
    void place(SlotPlaces &places) override { place_ = places.take(sizeof(f32)); }

    void number(RowWriter &row, u32 c, f64 value) const override {
        const f32 rounded = static_cast<f32>(value);
        if (!fits_float(rounded)) return row.not_finite(c, value);
        if (value < 0) return row.wrong(c, shown_number(value));
        row.put(c, place_, rounded);
    }
    void stand_in(RowWriter &row, u32 c) const override { row.put(c, place_, missing_); }

    // Not of f64, which may be below 0 and round to it.
    bool takes_spans(CellType type) const override { return type <= CellType::boolean && type != CellType::f64; }
    bool put_span(const ColumnSpan &span, u32 row, RowBlock &rows) const override {
        return put_floats(span, row, rows, place_, [](f32 v) { return (v >= 0) & fits_float(v); });
    }
    bool stand_in_span(RowBlock &rows) const override {
        rows.fill(place_, missing_);
        return true;
    }

    bool is_float() const override { return true; }

  private:
    Place place_;
    f32 missing_;
};

inline std::unique_ptr<Kind> weight(const std::string &, const Options &options) {
    return std::make_unique<Weight>(options);
}

}  // namespace st::kinds
