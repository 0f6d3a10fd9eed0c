// Kinds whose cells are numbers, which may be written as text where the column says so.
#pragma once
#include "decode/amount_text.h"
#include "decode/float_span.h"
#include "decode/missing_words.h"
#include "decode/row_writer.h"
#include "decode/unscaled_integer.h"

namespace st {

class NumberKind : public Kind {
  public:
    explicit NumberKind(const Options &options)
        : missing_words_(options), point_(point_of(options)), scale_(connect_scale(options.get<std::string>("parse"))) {
        parses_ = point_ || scale_ || options.get<std::string>("parse") == "decimal";
    }

    void text(RowWriter &row, u32 c, std::string_view utf8) const override {
        f64 value;
        if (parses_ && read(utf8, value)) number(row, c, value);
        else no_number(row, c, utf8);
    }
    void written(RowWriter &row, u32 c, std::string_view utf8) const override {
        f64 value;
        if (read(utf8, value)) number(row, c, value);
        else no_number(row, c, utf8);
    }
    bool takes_text() const override { return parses_; }
    bool is_missing_word(std::string_view utf8) const override {
        return !scale_ && has_words() && missing_words_.has(utf8);   // "null" is base64
    }
    bool reads_points() const override { return point_ != ','; }

  protected:
    // Whether words stand for a missing cell; not where they may be names.
    virtual bool has_words() const { return true; }

    bool read(std::string_view utf8, f64 &value) const {
        if (scale_) {
            const auto found = parse_unscaled(utf8);
            if (found) value = found->over(*scale_);
            return found.has_value();
        }
        return point_ ? parse_amount(utf8, point_, value) : parse_decimal(utf8, value);
    }

    bool parses_;

  private:
    // Before the fraction of an amount; 0 of a decimal.
    static char point_of(const Options &options) {
        const auto parse = options.get<std::string>("parse");
        return parse == "amount" ? '.' : parse == "decimal_comma" ? ',' : char{0};
    }
    void no_number(RowWriter &row, u32 c, std::string_view utf8) const {
        if (is_missing_word(utf8)) row.missing(c, quoted(utf8));
        else row.wrong(c, quoted(utf8) + (scale_ ? NO_UNSCALED : ""));
    }

    const MissingWords missing_words_;
    const char point_;
    const std::optional<i32> scale_;   // of texts that are a decimal of Kafka Connect
};

}  // namespace st
