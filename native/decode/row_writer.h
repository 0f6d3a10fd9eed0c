// Cells → one row of the slot: each to its column's kind, then the missing policies. Every record format and the
// direct path share it. Plain floats have ways of their own, for most cells are those.
#pragma once
#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include "decode/decode_plan.h"
#include "decode/decoder.h"
#include "decode/missing_cells.h"
#include "decode/name_list.h"
#include "decode/plain_floats.h"
#include "decode/ragged_rows.h"
#include "decode/row_transforms.h"
#include "decode/transpose.h"

namespace st {

enum class RowEnd { trained, dead, filtered, held };   // held: the slot has no room for its ragged cells

// Order of a row's fate: a cell that does not fit makes it dead; else a missing cell with "skip" filters it, as do the
// cells of all heads; else a missing cell with "dead_letter" makes it dead. A column given twice: the last one counts.
class RowWriter {
  public:
    explicit RowWriter(std::shared_ptr<const DecodePlan> plan)
        : plan_(std::move(plan)), columns_(plan_->columns.data()), blocks_(plan_->blocks.data()),
          block_count_(static_cast<u32>(plan_->blocks.size())), floats_block_(plan_->floats_block),
          has_doubles_(plan_->has_doubles), constants_(plan_->constants), ragged_(*plan_),
          seen_(plan_->columns.size(), 0), transforms_(plan_->transforms.get()) {
        if (plan_->transforms && plan_->transforms->where >= 0) wrong_.resize(plan_->columns.size());
        for (const PlanColumn &column : plan_->columns) {
            wanted_.push_back(column.kind && column.missing != Missing::keep ? ~u32{0} : 0);
            awaited_.push_back(column.is_made ? 0 : wanted_.back());
            if (plan_->refuses_empty && column.kind && !column.is_made)
                features_.push_back(static_cast<u32>(wanted_.size() - 1));
            const PlainFloat *floats = column.kind ? column.kind->plain_float() : nullptr;
            float_at_.push_back(floats && column.from.empty() ? floats->place.offset : NO_FLOAT);
        }
        float_run_.resize(float_at_.size());
        for (u64 c = float_at_.size(), run = 0; c-- > 0; float_run_[c] = static_cast<u32>(run))
            run = float_at_[c] == NO_FLOAT || columns_[c].is_made ? 0 : run + 1;
        for (const DecodePlan::At &block : plan_->blocks) scratch_.emplace_back(block.stride + 1);
        row_.resize(plan_->blocks.size() + 1);
    }

    RowWriter(const RowWriter &) = delete;

    // The row to write; without a slot (rows passed over) it goes nowhere.
    void start(u8 *slot, u64 row) {
        u8 **const rows = row_.data();
        if (slot) [[likely]]
            for (u32 b = 0; b < block_count_; ++b) rows[b] = slot + blocks_[b].offset + row * blocks_[b].stride;
        else
            for (u32 b = 0; b < block_count_; ++b) rows[b] = scratch_[b].data();
        floats_ = rows[floats_block_];
        slot_ = slot;
        at_ = row;
        if (ragged_.any()) ragged_.start();
        if (plan_->transforms) cell_row_.start();
        if ((stamp_ += 2) == 0) {
            std::fill(seen_.begin(), seen_.end(), 0);
            stamp_ = 2;
        }
        failed_ = failed_whole_ = in_list_ = false;
        event_time_ms_ = -1;
    }

    bool has(u32 c) const { return seen_[c] == stamp_; }   // a cell was given
    bool failed() const { return failed_; }
    // Whose cell made the row dead or filtered; NO_COLUMN: the row as a whole.
    i32 failed_column() const { return failed_column_; }
    const std::string &reason() const { return reason_; }
    const DecodePlan &plan() const { return *plan_; }

    // Cells, by what they are in a record. Those of a column that is passed over are. NaN is a missing cell.
    void number(u32 c, f64 value) {
        if (float_at_[c] != NO_FLOAT && put_checked(c, float_at_[c], value)) [[likely]] return;
        if (std::isnan(value)) [[unlikely]] return missing(c, shown_number(value));
        if (const Kind *kind = columns_[c].kind.get()) kind->number(*this, c, value);
    }
    void integer(u32 c, u64 magnitude, bool negative) {   // a whole number, exact up to 64 bits
        if (const Kind *kind = columns_[c].kind.get()) kind->integer(*this, c, magnitude, negative);
    }
    void moment(u32 c, i64 count, TimeUnit unit) { columns_[c].kind->moment(*this, c, count, unit); }
    void long_integer(u32 c, f64 rounded, std::string_view digits) {   // one of more, with its decimal text
        if (const Kind *kind = columns_[c].kind.get()) kind->long_integer(*this, c, rounded, digits);
    }
    void boolean(u32 c, bool value) {
        if (const Kind *kind = columns_[c].kind.get()) kind->boolean(*this, c, value);
    }
    // `text` is valid UTF-8. Empty text is a missing cell.
    void text(u32 c, std::string_view text) {
        if (text.empty()) return missing(c);
        if (const Kind *kind = columns_[c].kind.get()) kind->text(*this, c, text);
    }
    // Bytes that are no text.
    void bytes(u32 c, std::string_view raw) {
        if (const Kind *kind = columns_[c].kind.get()) kind->bytes(*this, c, raw);
    }
    // The same in a format that has nothing but texts.
    void written(u32 c, std::string_view text) {
        if (text.empty()) return missing(c);
        if (const Kind *kind = columns_[c].kind.get()) kind->written(*this, c, text);
    }
    // The same of a text that its column's kind has looked at: Kind::word().
    void word(u32 c, std::string_view text, i32 known) {
        if (const Kind *kind = columns_[c].kind.get()) kind->put_word(*this, c, text, known);
    }
    // A text that is there as its hash alone.
    void hashed(u32 c, const TextHash &hash) {
        if (const Kind *kind = columns_[c].kind.get()) kind->hashed(*this, c, hash);
    }
    void missing(u32 c) { seen_[c] = stamp_ | 1; }
    void missing(u32 c, std::string got) { missing(c), missing_.add(stamp_, c, std::move(got)); }
    void missing(const std::vector<u32> &columns) { for (const u32 c : columns) seen_[c] = 0; }

    // A list in one cell of a column whose kind takes one: each element is announced, then comes as a cell does. So do
    // the two parts of a pair.
    CellForm form(u32 c) const { return columns_[c].kind ? columns_[c].kind->form() : CellForm::value; }
    void open_list(u32 c) {
        in_list_ = true;
        elements_ = taken_ = 0;
        parts_ = 0;
        columns_[c].kind->start_list(*this, c);
    }
    void next_element() { ++elements_, parts_ = 0; }
    void next_part() { ++parts_; }
    void end_pair(u32 c) { columns_[c].kind->end_pair(*this, c); }
    void close_list(u32 c) {
        columns_[c].kind->end_list(*this, c);
        in_list_ = false;
    }
    bool in_list() const { return in_list_; }
    u64 elements() const { return elements_; }   // announced
    u64 taken() const { return taken_; }         // of them, or of their parts, by put_element() and take_part()
    u32 parts() const { return parts_; }         // of the element at hand, which is no pair where there is none

    // Where in its row a plain float column lies: for put_number() of any value below 1e15. Else NO_FLOAT.
    u32 number_place(i32 c) const { return c < 0 ? NO_FLOAT : float_at_[c]; }

    template <class T>
    void put_number(u32 c, u32 place, T value) {
        if (has_doubles_) plain_floats::put<f64>(floats_ + place, value);
        else plain_floats::put<f32>(floats_ + place, value);
        seen_[c] = stamp_;
    }
    u32 float_bytes() const { return has_doubles_ ? sizeof(f64) : sizeof(f32); }

    // The same for any value; false, and nothing written, where it does not fit.
    template <class T>
    bool put_checked(u32 c, u32 place, T value) {
        if (!fits_float(static_cast<f32>(value))) [[unlikely]] return false;
        put_number(c, place, value);
        return true;
    }

    // Column c and those behind it, at most `most`, as long as value_at(i, value) gives them: how many were. T is the
    // type that the record has them in.
    template <class T, class ValueAt>
    u64 put_run(i32 c, u64 most, ValueAt value_at) {
        const u64 run = c < 0 ? 0 : std::min<u64>(float_run_[static_cast<u32>(c)], most);
        if (run == 0) return 0;
        u8 *const to = floats_ + float_at_[static_cast<u32>(c)];
        const u64 count = has_doubles_ ? plain_floats::put_each<f64, T>(to, run, value_at)
                                       : plain_floats::put_each<f32, T>(to, run, value_at);
        std::fill_n(seen_.data() + c, count, stamp_);
        return count;
    }

    // The same of so many columns that are plain numbers side by side, all of which value_at(i) gives: false where one
    // does not fit, and they are to be given again one by one.
    template <class ValueAt>
    [[gnu::always_inline]] bool put_all(u32 c, u64 count, ValueAt value_at) {
        u8 *const to = floats_ + float_at_[c];
        if (!(has_doubles_ ? plain_floats::put_all<f64>(to, count, value_at)
                           : plain_floats::put_all<f32>(to, count, value_at)))
            return false;
        std::fill_n(seen_.data() + c, count, stamp_);
        return true;
    }

    // A cell was given of a column that takes no list.
    bool has_any() const {
        for (u32 c = 0; c < seen_.size(); ++c)
            if (seen_[c] == stamp_ && form(c) == CellForm::value) return true;
        return false;
    }

    // What kinds do with a cell: an element at the column's place, a time, or a reason.
    template <class T>
    void put(u32 c, Place place, T value) {
        std::memcpy(row_[place.block] + place.offset, &value, sizeof value);
        seen_[c] = stamp_;
    }

    void put_bytes(u32 c, Place place, const u8 *values, u64 count) {
        std::memcpy(row_[place.block] + place.offset, values, count);
        seen_[c] = stamp_;
    }

    // One element of a list that lies in a fixed block; all are there.
    template <class T>
    void put_element(Place place, T value) {
        std::memcpy(row_[place.block] + place.offset, &value, sizeof value);
        ++taken_;
    }
    void take_part() { ++taken_; }   // of a pair
    void given(u32 c) { seen_[c] = stamp_; }

    // All elements of the cell, in a ragged block.
    template <class T>
    void put_values(u32 c, Place place, const T *values, u64 count) {
        ragged_.put(place.block, values, count);
        seen_[c] = stamp_;
    }

    // The same one after the other, from start_values() to end_values(): the first `most` stay.
    void start_values(Place place) { ragged_.clear(place.block); }
    template <class T>
    void add_value(Place place, T value, u64 most) { ragged_.add(place.block, value, most); }
    u64 values(Place place) const { return ragged_.count(place.block); }
    void end_values(u32 c, Place place) {
        ragged_.keep(place.block);
        seen_[c] = stamp_;
    }

    void put_time(u32 c, i64 ms) {
        event_time_ms_ = ms;
        seen_[c] = stamp_;
    }

    // Cells as transforms read them: a kind puts its cell into this row of its column of cells, and says so.
    CellRow &cell_row() { return cell_row_; }
    RowTransforms &transforms() { return transforms_; }
    void give(u32 c) { seen_[c] = stamp_; }

    // The cell does not fit its column; the first such cell of a row is reported.
    void wrong(u32 c, std::string_view got) {
        if (!columns_[c].kind) return;
        const std::string at = in_list_ && elements_ ? " at [" + std::to_string(elements_ - 1) + "]" : "";
        fail(static_cast<i32>(c), std::string("expected ") + columns_[c].expected() + ", got " + std::string(got) + at);
    }

    void not_finite(u32 c, f64 got) {
        const std::string expected = "expected a number from -1e18 to 1e18, whose square fits float32, got ";
        fail(static_cast<i32>(c), expected + shown_number(got));
    }

    void fail(i32 column, std::string reason) {
        if (column == NO_COLUMN) failed_whole_ = true;
        else if (!wrong_.empty()) wrong_[static_cast<u32>(column)] = stamp_;
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

    // Rows that wait for others: row_transforming.h. Whether the row lacks nothing but what transforms make of it; puts
    // all else of such a row; takes it up again where it lies in the slot, its cells in cells() but for the missing.
    bool is_given();
    void put_rest();
    template <class IsMissing>
    void take_up(u8 *slot, u64 row, i64 event_time_ms, IsMissing is_missing);

    // Whether the row names none of the columns that its plan wants some of; and its refusal, by the names it has.
    bool is_empty() const;
    void refuse_empty(const NameList &others);

    // Applies the missing policies and completes the row.
    RowEnd finish() {
        if (plan_->transforms && !transform_row()) return RowEnd::filtered;
        if (failed_) return RowEnd::dead;
        if (any_unseen(wanted_)) {
            const RowEnd end = fill_missing();
            if (end != RowEnd::trained) return end;
        }
        put_constants();
        return ragged_.any() && slot_ ? append_ragged() : RowEnd::trained;
    }

    // A row that was held, into another slot. False: that has no room for it either.
    bool put_held(u8 *slot, u64 row) {
        if (!ragged_.fits(slot, row)) return false;
        for (u32 b = 0; b < block_count_; ++b)
            std::memcpy(slot + blocks_[b].offset + row * blocks_[b].stride, scratch_[b].data(), blocks_[b].stride);
        ragged_.append(slot, row);
        return true;
    }

    i64 event_time_ms() const { return event_time_ms_; }

  private:
    bool any_unseen(const std::vector<u32> &of) const {
        u32 unseen = 0;
        const u32 *const seen = seen_.data(), *const wanted = of.data();
        for (u64 c = 0, count = seen_.size(); c < count; ++c) unseen |= (seen[c] ^ stamp_) & wanted[c];
        return unseen;
    }
    void put_constants() {
        for (const DecodePlan::Bits &constant : constants_)
            std::memcpy(row_[constant.place.block] + constant.place.offset, &constant.bits, 4);
    }

    // Makes the columns that transforms give. False where `where` leaves the row out, whatever else is wrong with it.
    bool transform_row();
    void put_made(const Made &made, const CellColumn &cells);

    RowEnd append_ragged() {
        if (const u64 most = ragged_.exceeded()) {
            fail_whole("expected at most " + std::to_string(most) + " values in a row, got more");
            return RowEnd::dead;
        }
        if (ragged_.fits(slot_, at_)) {
            ragged_.append(slot_, at_);
            return RowEnd::trained;
        }
        for (u32 b = 0; b < block_count_; ++b) std::memcpy(scratch_[b].data(), row_[b], blocks_[b].stride);
        return RowEnd::held;
    }

    RowEnd fill_missing() {
        i32 letter = NO_COLUMN;
        i32 skip = NO_COLUMN;
        i32 head = NO_COLUMN;
        u32 heads = 0;
        for (u32 c = 0; c < seen_.size(); ++c) {
            const PlanColumn &column = columns_[c];
            if (seen_[c] == stamp_ || !column.kind || column.missing == Missing::keep) continue;
            if (column.missing == Missing::skip) skip = skip == NO_COLUMN ? static_cast<i32>(c) : skip;
            else if (column.missing == Missing::dead_letter)
                letter = letter == NO_COLUMN ? static_cast<i32>(c) : letter;
            else column.kind->stand_in(*this, c);
            if (column.missing == Missing::head && heads++ == 0) head = static_cast<i32>(c);
        }
        if (skip == NO_COLUMN && heads && heads == plan_->heads) skip = head;
        if (skip != NO_COLUMN) {
            failed_column_ = skip;
            return RowEnd::filtered;
        }
        if (letter == NO_COLUMN) return RowEnd::trained;
        fail(letter, std::string("expected ") + columns_[letter].expected() + ", got " + missing_.got(stamp_, letter));
        return RowEnd::dead;
    }

    std::shared_ptr<const DecodePlan> plan_;
    const PlanColumn *columns_;
    const DecodePlan::At *blocks_;
    u32 block_count_, floats_block_;
    const bool has_doubles_;      // in that block
    std::vector<DecodePlan::Bits> constants_;
    RaggedRows ragged_;
    std::vector<u32> float_at_;   // of a plain float column, its bytes into the row
    std::vector<u32> float_run_;   // how many of them lie in a row from a column on
    std::vector<u32> seen_;   // stamp of the row that gave the column last; with bit 0: that said it is missing
    std::vector<u32> features_;   // where rows without any are refused
    std::vector<u32> wanted_;   // all bits of a column that is not passed over
    std::vector<u32> awaited_;  // the same of those that no transform makes
    u32 stamp_ = 0;               // even
    MissingCells missing_;
    std::vector<u8 *> row_;       // of each block, and one more
    u8 *floats_ = nullptr;        // of the block of plain floats
    u8 *slot_ = nullptr;
    u64 at_ = 0;                  // the row's place in it
    std::vector<std::vector<u8>> scratch_;
    bool failed_ = false, failed_whole_ = false, in_list_ = false;
    bool lacks_some_ = false;     // of the columns in the record, as is_given() found
    u64 elements_ = 0, taken_ = 0;   // of the open list
    u32 parts_ = 0;
    i32 failed_column_ = NO_COLUMN;
    std::string reason_;
    i64 event_time_ms_ = -1;
    RowTransforms transforms_;
    CellRow cell_row_{transforms_.cells};
    std::vector<u32> wrong_;      // stamp of the row whose cell of the column did not fit; without a `where` empty
};

inline void Kind::text(RowWriter &row, u32 c, std::string_view utf8) const { row.wrong(c, quoted(utf8)); }

inline void Kind::bytes(RowWriter &row, u32 c, std::string_view) const { row.wrong(c, "binary"); }

inline void Kind::hashed(RowWriter &row, u32 c, const TextHash &) const { row.wrong(c, "the hash of a text"); }

}  // namespace st

#include "decode/row_transforming.h"
