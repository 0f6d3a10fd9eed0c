// When a row happened: milliseconds since 1970 beside the slot, in no block.
#pragma once
#include "decode/column_span.h"
#include "decode/row_writer.h"

namespace st::kinds {

class Time final : public Kind {
  public:
    Time(const std::string &column, const Options &options)
        : missing_ms_(static_cast<i64>(options.number("missing_value", -1))) {
        const std::vector<i64> unit = options.get<std::vector<i64>>("unit", {1, 1});
        if (unit.size() != 2 || unit[1] < 1)
            throw std::invalid_argument(column + ": a unit's divisor must be at least 1");
        numerator_ = unit[0], divisor_ = unit[1];
    }

    const char *expected() const override { return "number (a time)"; }
    void place(SlotPlaces &) override {}

    void number(RowWriter &row, u32 c, f64 value) const override {
        const f64 ms = std::floor(value * static_cast<f64>(numerator_) / static_cast<f64>(divisor_));
        if (!(std::abs(ms) < 4e18)) return row.wrong(c, shown_number(value));
        row.put_time(c, static_cast<i64>(ms));
    }
    void integer(RowWriter &row, u32 c, u64 magnitude, bool negative) const override {
        if (magnitude >= u64{1} << 62 || numerator_ != 1) return Kind::integer(row, c, magnitude, negative);
        const i64 time = negative ? -static_cast<i64>(magnitude) : static_cast<i64>(magnitude);
        row.put_time(c, time / divisor_ - (time < 0 && time % divisor_));
    }
    void boolean(RowWriter &row, u32 c, bool value) const override { row.wrong(c, value ? "true" : "false"); }
    void stand_in(RowWriter &row, u32 c) const override { row.put_time(c, missing_ms_); }

    bool stand_in_span(RowBlock &rows) const override {
        rows.newest_event_time_ms = std::max(rows.newest_event_time_ms, missing_ms_);
        return true;
    }

  private:
    i64 numerator_ = 1, divisor_ = 1, missing_ms_;   // milliseconds of one unit
};

inline std::unique_ptr<Kind> time(const std::string &column, const Options &options) {
    return std::make_unique<Time>(column, options);
}

}  // namespace st::kinds
