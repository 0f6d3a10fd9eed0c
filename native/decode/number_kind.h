// Kinds whose cells are numbers, which may be written as text where the column says so.
#pragma once
#include "decode/decimal_text.h"
#include "decode/float_span.h"
#include "decode/row_writer.h"

namespace st {

class NumberKind : public Kind {
  public:
    explicit NumberKind(const Options &options) : parses_(!options.get<std::string>("parse").empty()) {}

    void text(RowWriter &row, u32 c, std::string_view utf8) const override {
        f64 value;
        if (parses_ && parse_decimal(utf8, value)) number(row, c, value);
        else row.wrong(c, quoted(utf8));
    }
    void written(RowWriter &row, u32 c, std::string_view utf8) const override {
        f64 value;
        if (parse_decimal(utf8, value)) number(row, c, value);
        else row.wrong(c, quoted(utf8));
    }
    bool takes_text() const override { return parses_; }

  protected:
    // Texts into float32 columns of a slot; false where one is no number, or does not fit.
    template <class Fits>
    static bool put_decimals(const std::string_view *texts, RowBlock &rows, Place place, Fits fits) {
        u8 *to = rows.at(place);
        for (u32 i = 0; i < rows.count; ++i, to += rows.stride(place)) {
            f64 exact;
            if (!parse_decimal(texts[i], exact) || !fits(exact)) return false;
            const f32 value = static_cast<f32>(exact);
            std::memcpy(to, &value, 4);
        }
        return true;
    }
    static bool rounds_to_float(f64 value) { return fits_float(static_cast<f32>(value)); }

    const bool parses_;
};

}  // namespace st
