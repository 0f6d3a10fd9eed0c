// The cells of rows as they are decoded, beside what the slot has of them: a table for an encoder of records.
// One thread.
#pragma once
#include <cmath>
#include <memory>
#include <utility>

#include "decode/decimal_text.h"
#include "decode/row_table.h"
#include "decode/row_writer.h"

namespace st {

class KeptRows final : public RowWatch {
  public:
    // Of these columns of records.
    explicit KeptRows(std::vector<PlanColumn> columns) {
        for (PlanColumn &column : columns) table_.columns.push_back({std::move(column), true, false, false, {}});
    }

    const RowTable &table() const { return table_; }
    RowTable &table() { return table_; }

    // The slot's rows are the table's from `row` on, and there is room for `rows` of them.
    void place(u64 row, u64 rows) {
        first_ = row;
        if (row + rows <= table_.rows) return;
        // columns that lie a power of two apart would share a few lines of the cache
        const u64 room = (std::max(2 * table_.rows, row + rows) | 63) + 5;
        std::vector<Cell> cells(room * table_.columns.size());
        for (u64 c = 0; c < table_.columns.size(); ++c)
            std::copy_n(table_.cells.begin() + static_cast<i64>(c * table_.rows), table_.rows,
                        cells.begin() + static_cast<i64>(c * room));
        table_.cells = std::move(cells);
        table_.rows = room;
    }

    void clear() {
        table_.letters.clear();
        table_.elements.clear();
    }

    void start(u64 row) override {
        row_ = first_ + row;
        in_list_ = false;
        for (u32 c = 0; c < table_.columns.size(); ++c) cell(c).kind = CellKind::missing;
    }

    // What stands in a column of the row at hand, or in its open list.
    void missing(u32 c) override {
        if (c < table_.columns.size()) put(c, CellKind::missing);   // others are made of them
    }
    void boolean(u32 c, bool value) { put(c, CellKind::boolean).flag = value; }
    void number(u32 c, f64 value) {
        if (std::isnan(value)) return missing(c);
        put(c, CellKind::number).number = value;
    }
    void integer(u32 c, u64 magnitude, bool negative) {
        Cell &to = put(c, CellKind::integer);
        to.magnitude = magnitude;
        to.flag = negative;
    }
    void letters(u32 c, CellKind kind, std::string_view text) {
        Cell &to = put(c, kind);
        to.letters_at = table_.letters.size();
        to.size = static_cast<u32>(text.size());
        table_.letters += text;
    }
    void hashed(u32 c, const TextHash &hash) {
        Cell &to = put(c, CellKind::hashed);
        to.magnitude = hash.value;
        to.size = hash.by.seed;
        to.flag = hash.by.bits == 64;
    }
    void start_list(u32 c) {
        Cell &list = cell(c);
        list.kind = CellKind::list;
        list.size = 0;
        list.letters_at = table_.elements.size();
        in_list_ = true;
    }
    void end_list() { in_list_ = false; }

  private:
    Cell &cell(u32 c) { return table_.cells[c * table_.rows + row_]; }
    Cell &put(u32 c, CellKind kind) {
        Cell *to = &cell(c);
        if (in_list_) {
            ++to->size;
            to = &table_.elements.emplace_back();
        }
        to->kind = kind;
        return *to;
    }

    RowTable table_;
    u64 first_ = 0, row_ = 0;
    bool in_list_ = false;
};

// A column's kind, and what goes by it into a table. Without a kind, of a column that no slot has: the table alone.
class KeepingKind final : public Kind {
  public:
    KeepingKind(std::shared_ptr<Kind> inner, KeptRows &rows, u32 column)
        : inner_(std::move(inner)), rows_(rows), to_(column) {}

    const char *expected() const override { return inner_ ? inner_->expected() : "anything"; }
    void place(SlotPlaces &places) override {
        if (inner_) inner_->place(places);
    }

    void number(RowWriter &row, u32 c, f64 value) const override {
        rows_.number(to_, value);
        if (inner_) inner_->number(row, c, value);
    }
    void integer(RowWriter &row, u32 c, u64 magnitude, bool negative) const override {
        rows_.integer(to_, magnitude, negative && magnitude);
        if (inner_) inner_->integer(row, c, magnitude, negative);
    }
    void long_integer(RowWriter &row, u32 c, f64 rounded, std::string_view digits) const override {
        rows_.letters(to_, CellKind::long_integer, digits);
        if (inner_) inner_->long_integer(row, c, rounded, digits);
    }
    void boolean(RowWriter &row, u32 c, bool value) const override {
        rows_.boolean(to_, value);
        if (inner_) inner_->boolean(row, c, value);
    }
    // As what the column itself counts.
    void moment(RowWriter &row, u32 c, i64 count, TimeUnit unit) const override {
        const TimeUnit *const own = inner_ ? inner_->time_unit() : nullptr;
        if (own) keep_moment(count, unit, *own);
        else rows_.integer(to_, count < 0 ? 0 - static_cast<u64>(count) : static_cast<u64>(count), count < 0);
        if (inner_) inner_->moment(row, c, count, unit);
    }
    const TimeUnit *time_unit() const override { return inner_ ? inner_->time_unit() : nullptr; }
    void text(RowWriter &row, u32 c, std::string_view utf8) const override {
        rows_.letters(to_, CellKind::text, utf8);
        if (inner_) inner_->text(row, c, utf8);
    }
    // A number where the column does not stand for its text.
    void written(RowWriter &row, u32 c, std::string_view utf8) const override {
        u64 whole;
        bool negative;
        f64 value;
        if (!inner_ || inner_->is_text() || !inner_->reads_points()) rows_.letters(to_, CellKind::text, utf8);
        else if (parse_whole(utf8, whole, negative)) rows_.integer(to_, whole, negative && whole);
        else if (parse_decimal(utf8, value)) rows_.number(to_, value);
        else rows_.letters(to_, CellKind::text, utf8);
        if (inner_) inner_->written(row, c, utf8);
    }
    void hashed(RowWriter &row, u32 c, const TextHash &hash) const override {
        rows_.hashed(to_, hash);
        if (inner_) inner_->hashed(row, c, hash);
    }
    void bytes(RowWriter &row, u32 c, std::string_view raw) const override {
        rows_.letters(to_, !inner_ || inner_->takes_bytes() ? CellKind::bytes : CellKind::text, raw);
        if (inner_) inner_->bytes(row, c, raw);
    }
    void stand_in(RowWriter &row, u32 c) const override {
        if (inner_) inner_->stand_in(row, c);
    }

    CellForm form() const override { return inner_ ? inner_->form() : CellForm::value; }
    void start_list(RowWriter &row, u32 c) const override {
        rows_.start_list(to_);
        inner_->start_list(row, c);
    }
    void end_list(RowWriter &row, u32 c) const override {
        rows_.end_list();
        inner_->end_list(row, c);
    }
    void end_pair(RowWriter &row, u32 c) const override { inner_->end_pair(row, c); }
    void pair(RowWriter &row, u32 c, u64 index, f64 value) const override { inner_->pair(row, c, index, value); }

    const std::vector<std::string> *namespaces() const override { return inner_ ? inner_->namespaces() : nullptr; }

    i32 word(std::string_view utf8) const override { return inner_ ? inner_->word(utf8) : NO_WORD; }
    void put_word(RowWriter &row, u32 c, std::string_view utf8, i32 known) const override {
        rows_.letters(to_, CellKind::text, utf8);
        if (inner_) inner_->put_word(row, c, utf8, known);
    }

    const PlainFloat *plain_float() const override { return inner_ ? inner_->plain_float() : nullptr; }
    const PlainFloat *row_float() const override { return inner_ ? inner_->row_float() : nullptr; }
    bool is_float() const override { return inner_ && inner_->is_float(); }
    bool narrows() const override { return inner_ && inner_->narrows(); }
    bool is_text() const override { return inner_ && inner_->is_text(); }
    bool takes_text() const override { return !inner_ || inner_->takes_text(); }
    bool takes_bytes() const override { return !inner_ || inner_->takes_bytes(); }
    bool is_missing_word(std::string_view utf8) const override { return inner_ && inner_->is_missing_word(utf8); }
    bool reads_points() const override { return !inner_ || inner_->reads_points(); }
    bool takes_names() const override { return !inner_ || inner_->takes_names(); }
    bool refuses_text() const override { return inner_ && inner_->refuses_text(); }
    const TextHasher *hasher() const override { return inner_ ? inner_->hasher() : nullptr; }

  private:
    void keep_moment(i64 count, TimeUnit unit, TimeUnit own) const {
        const __int128 over = static_cast<__int128>(count) * unit.numerator * own.divisor;
        const __int128 under = static_cast<__int128>(unit.divisor) * own.numerator;
        const __int128 whole = over / under;
        constexpr i64 MOST = i64{1} << 62;
        if (over % under == 0 && whole < MOST && whole > -MOST)
            rows_.integer(to_, static_cast<u64>(whole < 0 ? -whole : whole), whole < 0);
        else rows_.number(to_, static_cast<f64>(over) / static_cast<f64>(under));
    }

    std::shared_ptr<Kind> inner_;
    KeptRows &rows_;
    u32 to_;
};

}  // namespace st
