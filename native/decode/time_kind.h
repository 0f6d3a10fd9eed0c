// Kinds whose cells are times: a count of a unit since 1970, or a text where the column says how it is read.
#pragma once
#include <optional>

#include "decode/column_span.h"
#include "decode/decimal_text.h"
#include "decode/missing_words.h"
#include "decode/row_writer.h"
#include "decode/time_text.h"

namespace st {

class TimeKind : public Kind {
  public:
    TimeKind(const std::string &column, const Options &options)
        : missing_ms_(static_cast<i64>(options.number("missing_value", -1))), missing_words_(options) {
        const std::vector<i64> unit = options.get<std::vector<i64>>("unit", {1, 1});
        if (unit.size() != 2 || unit[1] < 1)
            throw std::invalid_argument(column + ": a unit's divisor must be at least 1");
        unit_ = {unit[0], unit[1]};
        const auto format = options.get<std::string>("parse");
        if (format.empty()) return;
        const auto zone = options.get<std::vector<i64>>("zone");
        text_.emplace(format, zone);
        expected_ = "time (a number, or text: " + format + (zone.empty() ? " with its zone)" : ")");
    }

    const char *expected() const override { return expected_.c_str(); }
    void place(SlotPlaces &) override {}

    void number(RowWriter &row, u32 c, f64 value) const override {
        const f64 ms = ms_of(value);
        if (!(std::abs(ms) < 4e18)) return row.wrong(c, shown_number(value));
        put(row, c, static_cast<i64>(ms));
    }
    void integer(RowWriter &row, u32 c, u64 magnitude, bool negative) const override {
        if (magnitude >= u64{MOST} || unit_.numerator != 1) return Kind::integer(row, c, magnitude, negative);
        put(row, c, floor_of(negative ? -static_cast<i64>(magnitude) : static_cast<i64>(magnitude)));
    }
    void boolean(RowWriter &row, u32 c, bool value) const override { row.wrong(c, value ? "true" : "false"); }
    void moment(RowWriter &row, u32 c, i64 count, TimeUnit unit) const override {
        i64 ms;
        if (is_moment(count, unit, ms)) put(row, c, ms);
        else row.wrong(c, std::to_string(count));
    }
    const TimeUnit *time_unit() const override { return &unit_; }
    void text(RowWriter &row, u32 c, std::string_view utf8) const override {
        i64 ms;
        if (text_ && text_->parse(utf8, ms)) put(row, c, ms);
        else no_time(row, c, utf8);
    }
    void written(RowWriter &row, u32 c, std::string_view utf8) const override {
        i64 ms;
        u64 whole;
        bool negative;
        f64 value;
        if (text_ && text_->parse(utf8, ms)) put(row, c, ms);
        else if (parse_whole(utf8, whole, negative)) integer(row, c, whole, negative);
        else if (parse_decimal(utf8, value)) number(row, c, value);
        else no_time(row, c, utf8);
    }
    bool takes_text() const override { return text_.has_value(); }
    bool is_missing_word(std::string_view utf8) const override {
        i64 ms;
        return missing_words_.has(utf8) && !(text_ && text_->parse(utf8, ms));
    }
    void stand_in(RowWriter &row, u32 c) const override { put(row, c, missing_ms_); }

    bool takes_spans(CellType type) const override {
        return type <= CellType::u64 || (holds_texts(type) && text_);
    }

  protected:
    static constexpr i64 MOST = i64{1} << 62;

    virtual void put(RowWriter &row, u32 c, i64 ms) const = 0;

    // Calls take(i, ms) for the cells of a block; false where one is no time.
    template <class Take>
    bool each_time(const ColumnSpan &span, u32 row, u32 count, Take take) const {
        bool good = true;
        if (span.unit)
            return span.each_number(row, count, [&](u32 i, auto given) {
                i64 ms = 0;
                good &= is_moment(static_cast<i64>(given), *span.unit, ms);
                take(i, ms);
            }) && good;
        const auto each = [&](u32 i, auto given) {
            using T = decltype(given);
            if constexpr (std::is_integral_v<T>) {
                if (unit_.numerator == 1) {
                    good &= given < T{0} ? static_cast<i64>(given) > -MOST : static_cast<u64>(given) < u64{MOST};
                    return take(i, floor_of(static_cast<i64>(given)));
                }
            }
            const f64 ms = ms_of(static_cast<f64>(given));
            const bool fits = std::abs(ms) < 4e18;
            good &= fits;
            take(i, fits ? static_cast<i64>(ms) : 0);
        };
        return span.each_number(row, count, each) && good;
    }
    template <class Take>
    bool each_text(const std::string_view *texts, u32 count, Take take) const {
        for (u32 i = 0; i < count; ++i) {
            i64 ms;
            if (!text_->parse(texts[i], ms)) return false;
            take(i, ms);
        }
        return true;
    }

    i64 missing_ms_;

  private:
    void no_time(RowWriter &row, u32 c, std::string_view utf8) const {
        if (missing_words_.has(utf8)) row.missing(c, quoted(utf8));
        else row.wrong(c, quoted(utf8));
    }

    static bool is_moment(i64 count, TimeUnit unit, i64 &ms) {
        const __int128 scaled = static_cast<__int128>(count) * unit.numerator;
        const __int128 found = scaled / unit.divisor - (scaled < 0 && scaled % unit.divisor);
        const bool fits = found < MOST && found > -MOST;
        ms = fits ? static_cast<i64>(found) : 0;
        return fits;
    }

    f64 ms_of(f64 time) const {
        return std::floor(time * static_cast<f64>(unit_.numerator) / static_cast<f64>(unit_.divisor));
    }
    i64 floor_of(i64 time) const { return time / unit_.divisor - (time < 0 && time % unit_.divisor); }

    const MissingWords missing_words_;
    TimeUnit unit_ = {1, 1};
    std::string expected_ = "number (a time)";
    std::optional<TimeText> text_;
};

}  // namespace st
