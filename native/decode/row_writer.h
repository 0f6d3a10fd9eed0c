// Cells → one row of the slot: the checks, conversions and missing policies every record format and the direct path
// share.
#pragma once
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "decode/decoder.h"
#include "decode/murmur3.h"
#include "decode/decode_plan.h"
#include "decode/utf8.h"

namespace st {

// What stood in a cell that its column cannot take, cut to 40 characters and made printable, for a reason.
inline std::string shown(std::string_view got) {
    std::string text;
    for (char c : got.substr(0, 40)) text += c >= ' ' && c < 0x7f ? c : '?';
    return got.size() > 40 ? text + "..." : text;
}

inline std::string shown_number(f64 value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    char text[32];
    return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

enum class RowEnd { trained, dead, filtered };

// Order of a row's fate: a cell that does not fit makes it dead; else a missing cell with "skip" filters it; else a
// missing cell with "dead_letter" makes it dead. A column given twice: the last one counts.
class RowWriter {
  public:
    explicit RowWriter(std::shared_ptr<const DecodePlan> plan)
        : plan_(std::move(plan)), columns_(plan_->columns.data()), seen_(plan_->columns.size(), 0) {
        for (const PlanColumn &column : plan_->columns)
            wanted_.push_back(column.target == Target::ignored ? 0 : ~u32{0});
        for (const PlanColumn &column : plan_->columns)
            number_at_.push_back(column.target == Target::number ? column.row_offset : NO_NUMBER);
        number_run_.resize(number_at_.size());
        for (u64 c = number_at_.size(), run = 0; c-- > 0; number_run_[c] = static_cast<u32>(run))
            run = number_at_[c] == NO_NUMBER ? 0 : run + 1;
        for (u32 b = 0; b < BLOCK_KINDS; ++b) scratch_[b].resize(plan_->stride[b] + 4);
    }

    // The row to write; without a slot (rows passed over) it goes nowhere.
    void start(u8 *slot, u64 row) {
        for (u32 b = 0; b < BLOCK_KINDS; ++b)
            row_[b] = slot ? slot + plan_->offset[b] + row * plan_->stride[b] : scratch_[b].data();
        if (++stamp_ == 0) {
            std::fill(seen_.begin(), seen_.end(), 0);
            stamp_ = 1;
        }
        failed_ = false;
        event_time_ms_ = -1;
    }

    bool has(u32 c) const { return seen_[c] == stamp_; }   // a cell was given
    bool failed() const { return failed_; }
    // Whose cell made the row dead or filtered; NO_COLUMN: the row as a whole.
    i32 failed_column() const { return failed_column_; }
    const std::string &reason() const { return reason_; }
    const DecodePlan &plan() const { return *plan_; }

    void number(u32 c, f64 value) {
        const PlanColumn &column = columns_[c];
        const f32 rounded = static_cast<f32>(value);
        if (column.target == Target::number && std::abs(rounded) <= std::numeric_limits<f32>::max()) [[likely]] {
            std::memcpy(row_[NUMBERS] + column.row_offset, &rounded, 4);
            seen_[c] = stamp_;
            return;
        }
        other_number(c, value);
    }

    // Where in its row a plain number column lies: for put_number(), which takes any value below 1e15 without a look.
    // NO_NUMBER for all other columns and NO_COLUMN.
    static constexpr u32 NO_NUMBER = ~u32{0};
    u32 number_place(i32 c) const { return c < 0 ? NO_NUMBER : number_at_[c]; }

    void put_number(u32 c, u32 place, f64 value) {
        const f32 rounded = static_cast<f32>(value);
        std::memcpy(row_[NUMBERS] + place, &rounded, 4);
        seen_[c] = stamp_;
    }

    // The same for any value; false, and nothing written, where it does not fit float32.
    bool put_checked(u32 c, u32 place, f32 value) {
        if (!(std::abs(value) <= std::numeric_limits<f32>::max())) [[unlikely]]
            return false;
        std::memcpy(row_[NUMBERS] + place, &value, 4);
        seen_[c] = stamp_;
        return true;
    }

    // Column c and those behind it as long as they are plain numbers, at most `most`, and value_at(i, value) gives the
    // i-th of them (true) and it fits float32. How many were written.
    template <class ValueAt>
    u64 put_run(i32 c, u64 most, ValueAt value_at) {
        const u64 run = c < 0 ? 0 : std::min<u64>(number_run_[static_cast<u32>(c)], most);
        if (run == 0) return 0;
        u8 *to = row_[NUMBERS] + number_at_[static_cast<u32>(c)];
        u64 i = 0;
        for (f32 value; i < run && value_at(i, value); ++i) {
            if (!(std::abs(value) <= std::numeric_limits<f32>::max())) break;
            std::memcpy(to + 4 * i, &value, 4);
        }
        std::fill_n(seen_.data() + c, i, stamp_);
        return i;
    }

    bool has_any() const { return std::find(seen_.begin(), seen_.end(), stamp_) != seen_.end(); }

    // A whole number, exact up to 64 bits.
    void integer(u32 c, u64 magnitude, bool negative) {
        const PlanColumn &column = columns_[c];
        const f64 value = negative ? -static_cast<f64>(magnitude) : static_cast<f64>(magnitude);
        if (column.target == Target::category || column.target == Target::label_class || column.class_count) {
            char text[24] = "-";
            const bool minus = negative && magnitude;
            char *end = std::to_chars(text + minus, text + sizeof text, magnitude).ptr;
            const std::string_view digits(text, end - text);
            if (column.target == Target::category) return category(c, digits);
            if (column.names_are_integers) return class_name(c, digits, digits);
            if (minus || magnitude >= column.class_count) return wrong(c, digits);
            return put_class(c, static_cast<u32>(magnitude));
        }
        if (column.target == Target::event_time && magnitude < u64{1} << 62 && column.unit_numerator == 1) {
            const i64 time = negative ? -static_cast<i64>(magnitude) : static_cast<i64>(magnitude);
            return put_time(c, time / column.unit_divisor - (time < 0 && time % column.unit_divisor));
        }
        number(c, value);
    }

    // A whole number of more than 64 bits, with its decimal text.
    void long_integer(u32 c, f64 value, std::string_view digits) {
        if (columns_[c].target == Target::category) category(c, digits);
        else number(c, value);
    }

    void boolean(u32 c, bool value) {
        const PlanColumn &column = columns_[c];
        if (column.target == Target::category) return category(c, value ? "true" : "false");
        if (column.target == Target::label_class && !column.classes.empty()) {
            const char *name = value ? "true" : "false";
            return class_name(c, name, name);
        }
        if (column.target == Target::event_time || column.target == Target::label_class)
            return wrong(c, value ? "true" : "false");
        if (column.target == Target::label_binary) return put_class(c, value);
        number(c, value);
    }

    // `text` is valid UTF-8. Empty text is a missing cell.
    void text(u32 c, std::string_view text) {
        const PlanColumn &column = columns_[c];
        if (text.empty()) return missing(c);
        if (column.target == Target::category) return category(c, text);
        const std::string quoted = '"' + shown(text) + '"';
        if (!column.classes.empty()) return class_name(c, text, quoted);
        wrong(c, quoted);
    }

    // The same of a category's text whose bucket is known already.
    void word(u32 c, std::string_view known, u32 bucket) {
        if (columns_[c].target == Target::category) put(c, bucket);
        else text(c, known);
    }

    void missing(u32 c) { seen_[c] = 0; }

    // The cell does not fit its column; the first such cell of a row is reported.
    void wrong(u32 c, std::string_view got) {
        if (columns_[c].target == Target::ignored) return;
        fail(static_cast<i32>(c), std::string("expected ") + columns_[c].expected() + ", got " + std::string(got));
    }

    void fail(i32 column, std::string reason) {
        if (failed_) return;
        failed_ = true;
        failed_column_ = column;
        reason_ = std::move(reason);
    }

    // The row as a whole is wrong: reported before any of its cells.
    void fail_whole(std::string reason) {
        failed_ = false;
        fail(NO_COLUMN, std::move(reason));
    }

    // Applies the missing policies and completes the row.
    RowEnd finish() {
        if (failed_) return RowEnd::dead;
        u32 unseen = 0;
        const u32 *const seen = seen_.data(), *const wanted = wanted_.data();
        for (u64 c = 0, count = seen_.size(); c < count; ++c) unseen |= (seen[c] ^ stamp_) & wanted[c];
        if (unseen) {
            const RowEnd end = fill_missing();
            if (end != RowEnd::trained) return end;
        }
        if (plan_->weight_is_one && plan_->has[WEIGHT]) {
            const f32 one = 1;
            std::memcpy(row_[WEIGHT], &one, 4);
        }
        return RowEnd::trained;
    }

    i64 event_time_ms() const { return event_time_ms_; }

  private:
    void put(u32 c, u32 bits) {
        std::memcpy(row_[columns_[c].block] + columns_[c].row_offset, &bits, 4);
        seen_[c] = stamp_;
    }

    void put_time(u32 c, i64 ms) {
        event_time_ms_ = ms;
        seen_[c] = stamp_;
    }

    void put_float(u32 c, f32 value) {
        u32 bits;
        std::memcpy(&bits, &value, 4);
        put(c, bits);
    }

    void put_class(u32 c, u32 index) {
        if (columns_[c].target == Target::label_binary) put_float(c, static_cast<f32>(index));
        else put(c, index);
    }

    void category(u32 c, std::string_view text) {
        put(c, murmur3(text.data(), text.size(), columns_[c].seed) % columns_[c].buckets);
    }

    void class_name(u32 c, std::string_view name, std::string_view got) {
        const std::vector<std::string> &classes = columns_[c].classes;
        for (u32 i = 0; i < classes.size(); ++i)
            if (classes[i] == name) return put_class(c, i);
        wrong(c, got);
    }

    void other_number(u32 c, f64 value) {
        const PlanColumn &column = columns_[c];
        const auto is_whole = [value] {   // and below 2^53, so that its text is exact
            return std::abs(value) < 9007199254740992.0 && static_cast<f64>(static_cast<i64>(value)) == value;
        };
        switch (column.target) {
            case Target::ignored: return;
            case Target::category:
            case Target::label_class:
                if (is_whole()) return integer(c, static_cast<u64>(std::abs(value)), value < 0);
                return wrong(c, shown_number(value));
            case Target::label_binary:
                if (column.class_count && is_whole()) return integer(c, static_cast<u64>(std::abs(value)), value < 0);
                if (value == 0 || value == 1) return put_class(c, value == 1);
                return wrong(c, shown_number(value));
            case Target::event_time: {
                const f64 ms = std::floor(value * column.unit_numerator / column.unit_divisor);
                if (!(std::abs(ms) < 4e18)) return wrong(c, shown_number(value));
                return put_time(c, static_cast<i64>(ms));
            }
            default: break;
        }
        const f32 rounded = static_cast<f32>(value);
        if (!(std::abs(rounded) <= std::numeric_limits<f32>::max()))
            return fail(static_cast<i32>(c), "expected finite number that fits float32, got " + shown_number(value));
        if (column.target == Target::weight && value < 0) return wrong(c, shown_number(value));
        put_float(c, rounded);
    }

    RowEnd fill_missing() {
        i32 letter = NO_COLUMN;
        i32 skip = NO_COLUMN;
        for (u32 c = 0; c < seen_.size(); ++c) {
            const PlanColumn &column = columns_[c];
            if (seen_[c] == stamp_ || column.target == Target::ignored) continue;
            if (column.missing == Missing::skip) skip = skip == NO_COLUMN ? static_cast<i32>(c) : skip;
            else if (column.missing == Missing::dead_letter)
                letter = letter == NO_COLUMN ? static_cast<i32>(c) : letter;
            else if (column.target == Target::event_time) event_time_ms_ = column.missing_time_ms;
            else put(c, column.missing_bits);
        }
        if (skip != NO_COLUMN) {
            failed_column_ = skip;
            return RowEnd::filtered;
        }
        if (letter == NO_COLUMN) return RowEnd::trained;
        fail(letter, std::string("expected ") + columns_[letter].expected() + ", got nothing (missing)");
        return RowEnd::dead;
    }

    std::shared_ptr<const DecodePlan> plan_;
    const PlanColumn *columns_;
    std::vector<u32> number_at_;   // of a number column, its bytes into the row
    std::vector<u32> number_run_;   // how many number columns lie in a row from a column on
    std::vector<u32> seen_;   // stamp of the row that gave the column last
    std::vector<u32> wanted_;   // all bits of a column that is not ignored
    u32 stamp_ = 0;
    u8 *row_[BLOCK_KINDS] = {};
    std::vector<u8> scratch_[BLOCK_KINDS];
    bool failed_ = false;
    i32 failed_column_ = NO_COLUMN;
    std::string reason_;
    i64 event_time_ms_ = -1;
};

}  // namespace st
