// Columns whose texts are read as a boolean or a whole number and then go on as that one: True, true and 1 are one
// value, 1.0 and 1 too. So are whole decimals of Kafka Connect.
#pragma once
#include <algorithm>

#include "decode/column_span.h"
#include "decode/decimal_text.h"
#include "decode/missing_words.h"
#include "decode/row_writer.h"
#include "decode/unscaled_integer.h"

namespace st {

class CanonicalKind final : public Kind {
  public:
    CanonicalKind(std::unique_ptr<Kind> inner, bool is_boolean, const Options &options)
        : inner_(std::move(inner)), is_boolean_(is_boolean), missing_words_(options),
          scale_(connect_scale(options.get<std::string>("parse"))) {}

    const char *expected() const override { return is_boolean_ ? "true or false" : "whole number"; }
    void place(SlotPlaces &places) override { inner_->place(places); }

    void number(RowWriter &row, u32 c, f64 value) const override {
        if (!is_exact_whole(value)) return row.wrong(c, shown_number(value));
        integer(row, c, static_cast<u64>(std::abs(value)), value < 0);
    }
    void integer(RowWriter &row, u32 c, u64 magnitude, bool negative) const override {
        char buffer[24];
        if (!is_boolean_) inner_->integer(row, c, magnitude, negative);
        else if (magnitude > 1 || (negative && magnitude)) row.wrong(c, integer_text(magnitude, negative, buffer));
        else inner_->boolean(row, c, magnitude);
    }
    void long_integer(RowWriter &row, u32 c, f64 rounded, std::string_view digits) const override {
        if (is_boolean_) row.wrong(c, digits);
        else inner_->long_integer(row, c, rounded, digits);
    }
    void boolean(RowWriter &row, u32 c, bool value) const override {
        if (is_boolean_) inner_->boolean(row, c, value);
        else inner_->integer(row, c, value, false);
    }
    void text(RowWriter &row, u32 c, std::string_view utf8) const override {
        bool is_true;
        Whole whole;
        if (is_boolean_ && read_boolean(utf8, is_true)) inner_->boolean(row, c, is_true);
        else if (!is_boolean_ && read_whole(utf8, whole) && whole.digits.empty())
            inner_->integer(row, c, whole.magnitude, whole.negative);
        else if (!is_boolean_ && !whole.digits.empty()) inner_->long_integer(row, c, whole.rounded, whole.digits);
        else if (scale_) row.wrong(c, quoted(utf8) + (parse_unscaled(utf8) ? ", a fraction" : NO_UNSCALED));
        else if (missing_words_.has(utf8)) row.missing(c, quoted(utf8));
        else row.wrong(c, quoted(utf8));
    }
    void bytes(RowWriter &row, u32 c, std::string_view raw) const override { inner_->bytes(row, c, raw); }
    void stand_in(RowWriter &row, u32 c) const override { inner_->stand_in(row, c); }
    bool is_missing_word(std::string_view utf8) const override {
        bool is_true;
        Whole whole;
        if (scale_ || !missing_words_.has(utf8)) return false;   // "null" is base64
        return !(is_boolean_ ? read_boolean(utf8, is_true) : read_whole(utf8, whole));
    }

    CellForm form() const override { return inner_->form(); }
    void start_list(RowWriter &row, u32 c) const override { inner_->start_list(row, c); }
    void end_list(RowWriter &row, u32 c) const override { inner_->end_list(row, c); }

    bool takes_spans(CellType type) const override { return holds_texts(type) && inner_->takes_spans(type); }
    bool put_texts(const std::string_view *texts, RowBlock &rows) const override {
        thread_local Letters own;
        if (!rows.cells) own.clear();
        Letters &letters = rows.cells ? rows.cells->letters : own;
        std::string_view found[BLOCK_ROWS];
        for (u32 i = 0; i < rows.count; ++i)
            if (!put_text(texts[i], letters, found[i])) return false;
        return inner_->put_texts(found, rows);
    }
    bool stand_in_span(RowBlock &rows) const override { return inner_->stand_in_span(rows); }

    bool is_float() const override { return inner_->is_float(); }
    bool narrows() const override { return inner_->narrows(); }
    bool is_exact() const override { return inner_->is_exact(); }
    bool is_text() const override { return inner_->is_text(); }
    bool takes_text() const override { return true; }
    bool takes_names() const override { return inner_->takes_names(); }

  private:
    // `digits`: of one that 64 bits do not hold, else empty.
    struct Whole {
        u64 magnitude = 0;
        bool negative = false;
        f64 rounded = 0;
        std::string digits;
    };

    static bool read_boolean(std::string_view utf8, bool &is_true) {
        static constexpr std::string_view TRUE[] = {"true", "t", "yes", "y", "on"};
        static constexpr std::string_view FALSE[] = {"false", "f", "no", "n", "off"};
        const auto is_letter = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + 32 : a) == b; };
        const auto is = [&, word = without_spaces(utf8)](std::string_view small) {
            return std::equal(word.begin(), word.end(), small.begin(), small.end(), is_letter);
        };
        f64 value;
        is_true = std::any_of(std::begin(TRUE), std::end(TRUE), is);
        if (is_true || std::any_of(std::begin(FALSE), std::end(FALSE), is)) return true;
        if (!parse_decimal(utf8, value) || (value != 0 && value != 1)) return false;
        is_true = value == 1;
        return true;
    }

    bool read_whole(std::string_view utf8, Whole &whole) const {
        std::string scaled;
        if (scale_ && !whole_unscaled(utf8, *scale_, scaled)) return false;
        return read_digits(scale_ ? std::string_view(scaled) : utf8, whole);
    }
    static bool read_digits(std::string_view utf8, Whole &whole) {
        if (parse_whole(utf8, whole.magnitude, whole.negative)) {
            whole.negative &= whole.magnitude != 0;
            return true;
        }
        if (!parse_decimal(utf8, whole.rounded)) return false;
        std::string_view digits = unsigned_text(utf8, whole.negative);
        if (digits.find_first_not_of("0123456789") == digits.npos) {
            digits.remove_prefix(digits.find_first_not_of('0'));   // it is larger than 64 bits, so some digit is not 0
            whole.digits = (whole.negative ? "-" : "") + std::string(digits);
            return true;
        }
        if (!is_exact_whole(whole.rounded)) return false;
        whole.magnitude = static_cast<u64>(std::abs(whole.rounded));
        whole.negative = whole.rounded < 0;
        return true;
    }

    // The one text of the value.
    bool put_text(std::string_view utf8, Letters &letters, std::string_view &to) const {
        bool is_true;
        Whole whole;
        char buffer[24];
        if (is_boolean_ && read_boolean(utf8, is_true)) return to = is_true ? "true" : "false", true;
        if (is_boolean_ || !read_whole(utf8, whole)) return false;
        to = letters.keep(whole.digits.empty() ? integer_text(whole.magnitude, whole.negative, buffer)
                                               : std::string_view(whole.digits));
        return true;
    }

    const std::unique_ptr<Kind> inner_;
    const bool is_boolean_;
    const MissingWords missing_words_;
    const std::optional<i32> scale_;   // of texts that are a decimal of Kafka Connect
};

// The kind itself, where its column says nothing of how texts are read.
inline std::unique_ptr<Kind> canonical(std::unique_ptr<Kind> kind, const Options &options) {
    const auto parse = options.get<std::string>("parse");
    if (parse != "bool" && parse != "number" && !connect_scale(parse)) return kind;
    return std::make_unique<CanonicalKind>(std::move(kind), parse == "bool", options);
}

}  // namespace st
