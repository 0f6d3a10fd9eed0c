// A list of so many numbers: float32 side by side in a fixed block.
#pragma once
#include "decode/list_kind.h"
#include "decode/number_kind.h"

namespace st::kinds {

class Vector final : public NumberKind {
  public:
    explicit Vector(const Options &options)
        : NumberKind(options), size_(static_cast<u32>(options.get<i64>("size"))),
          missing_(static_cast<f32>(options.number("missing_value"))),
          expected_("list of " + std::to_string(size_) + " numbers") {}

    const char *expected() const override { return expected_.c_str(); }
    void place(SlotPlaces &places) override { place_ = places.take(size_ * static_cast<u32>(sizeof(f32))); }

    CellForm form() const override { return CellForm::list; }
    void end_list(RowWriter &row, u32 c) const override {
        if (row.elements() == size_ && row.taken() == size_) return row.given(c);
        const std::string got = row.elements() == size_ ? "a missing one" : std::to_string(row.elements());
        row.fail(static_cast<i32>(c), "expected a " + expected_ + ", got " + got);
    }
    void number(RowWriter &row, u32 c, f64 value) const override {
        const f32 rounded = static_cast<f32>(value);
        if (!row.in_list()) return row.wrong(c, shown_number(value));
        if (!fits_float(rounded)) return row.not_finite(c, value);
        const u64 at = row.elements() - 1;
        if (at < size_) row.put_element(element(static_cast<u32>(at)), rounded);
    }
    void stand_in(RowWriter &row, u32 c) const override {
        for (u32 i = 0; i < size_; ++i) row.put(c, element(i), missing_);
    }

    bool takes_spans(CellType type) const override { return type == CellType::floats; }
    bool put_span(const ColumnSpan &span, u32 row, RowBlock &rows) const override {
        if (span.width != sizeof(f32) * size_) return false;
        const char *from = span.data + u64{span.width} * row;
        u8 *to = rows.at(place_);
        for (u32 i = 0; i < rows.count; ++i, from += span.width, to += rows.stride(place_))
            std::memcpy(to, from, span.width);
        return all_fit(span.data + u64{span.width} * row, u64{size_} * rows.count);
    }
    bool stand_in_span(RowBlock &rows) const override {
        for (u32 i = 0; i < size_; ++i) rows.fill(element(i), missing_);
        return true;
    }

    bool is_float() const override { return true; }
    bool narrows() const override { return true; }

  protected:
    bool has_words() const override { return false; }

  private:
    Place element(u32 at) const { return {place_.block, place_.offset + at * static_cast<u32>(sizeof(f32))}; }

    static bool all_fit(const char *from, u64 count) {
        bool good = true;
        for (u64 i = 0; i < count; ++i) good &= fits_float(load_little<f32>(from + sizeof(f32) * i));
        return good;
    }

    Place place_;
    u32 size_;
    f32 missing_;
    std::string expected_;
};

inline std::unique_ptr<Kind> vector(const std::string &, const Options &options) {
    return std::make_unique<Vector>(options);
}

}  // namespace st::kinds
