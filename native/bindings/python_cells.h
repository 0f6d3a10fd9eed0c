// Cells of records as Python values: a kind that keeps what stands in a cell, whatever the job makes of it.
#pragma once
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "decode/decimal_text.h"
#include "decode/row_writer.h"

namespace st {

// Of one column. Its place in the slot tells which of `values` is the row's cell, counted from 1; 0: it has none.
class PythonCells final : public Kind {
  public:
    struct Settings {
        CellForm form = CellForm::value;
        bool is_text = false, takes_names = false;
        std::optional<TimeUnit> unit;                          // that the column's times are counted in
        std::optional<std::vector<std::string>> namespaces;
    };

    PythonCells(Settings settings, std::vector<nb::object> &values)
        : settings_(std::move(settings)), values_(values) {}

    const char *expected() const override {
        if (settings_.form == CellForm::pairs) return "list of pairs of an index or a name and a number";
        if (settings_.form == CellForm::list) return "a list of cells that can be read";
        return settings_.is_text ? "text" : "a cell that can be read";
    }
    void place(SlotPlaces &places) override { place_ = places.take(sizeof(u32)); }
    Place place() const { return place_; }

    void number(RowWriter &row, u32 c, f64 value) const override { put(row, c, nb::float_(value)); }
    void integer(RowWriter &row, u32 c, u64 magnitude, bool negative) const override {
        const nb::int_ whole(magnitude);
        put(row, c, negative ? nb::object(-whole) : nb::object(whole));
    }
    void long_integer(RowWriter &row, u32 c, f64 rounded, std::string_view digits) const override {
        nb::object whole = nb::steal(PyLong_FromString(std::string(digits).c_str(), nullptr, 10));
        if (!whole.is_valid()) PyErr_Clear(), whole = nb::float_(rounded);   // of more digits than Python reads
        put(row, c, std::move(whole));
    }
    void boolean(RowWriter &row, u32 c, bool value) const override { put(row, c, nb::bool_(value)); }
    void moment(RowWriter &row, u32 c, i64 count, TimeUnit unit) const override {
        if (!settings_.unit) return Kind::moment(row, c, count, unit);
        const __int128 over = static_cast<__int128>(count) * unit.numerator * settings_.unit->divisor;
        const __int128 under = static_cast<__int128>(unit.divisor) * settings_.unit->numerator;
        constexpr __int128 MOST = i64{1} << 62;
        if (over % under == 0 && over / under < MOST && over / under > -MOST)
            return put(row, c, nb::int_(static_cast<i64>(over / under)));
        number(row, c, static_cast<f64>(over) / static_cast<f64>(under));
    }
    const TimeUnit *time_unit() const override { return settings_.unit ? &*settings_.unit : nullptr; }
    void text(RowWriter &row, u32 c, std::string_view utf8) const override {
        put(row, c, nb::str(utf8.data(), utf8.size()));
    }
    // A number where the column does not stand for its text.
    void written(RowWriter &row, u32 c, std::string_view utf8) const override {
        u64 magnitude;
        bool negative;
        f64 value;
        if (settings_.is_text) text(row, c, utf8);
        else if (parse_whole(utf8, magnitude, negative)) integer(row, c, magnitude, negative && magnitude);
        else if (parse_decimal(utf8, value)) number(row, c, value);
        else text(row, c, utf8);
    }
    void bytes(RowWriter &row, u32 c, std::string_view raw) const override {
        put(row, c, nb::bytes(raw.data(), raw.size()));
    }
    void hashed(RowWriter &row, u32 c, const TextHash &hash) const override {
        put(row, c, nb::make_tuple(hash.value, hash.by.bits, hash.by.seed));
    }
    void stand_in(RowWriter &row, u32 c) const override { row.put(c, place_, u32{0}); }

    // Missing elements, which no kind is told of, are None.
    CellForm form() const override { return settings_.form; }
    void start_list(RowWriter &, u32) const override { list_ = nb::list(), pair_ = nb::list(); }
    void end_pair(RowWriter &row, u32) const override {
        pad(pair_, row.parts());
        pad(list_, row.elements() - 1);
        list_.append(std::exchange(pair_, nb::list()));
    }
    void end_list(RowWriter &row, u32 c) const override {
        pad(list_, row.elements());
        keep(row, c, list_);
    }
    // The value is one of float32: the shortest number that is the same.
    void pair(RowWriter &row, u32, u64 index, f64 value) const override {
        char text[32];
        f64 shortest = value;
        std::from_chars(text, std::to_chars(text, text + sizeof text, static_cast<f32>(value)).ptr, shortest);
        nb::list both;
        both.append(index);
        both.append(shortest);
        pad(list_, row.elements() - 1);
        list_.append(both);
    }
    const std::vector<std::string> *namespaces() const override {
        return settings_.namespaces ? &*settings_.namespaces : nullptr;
    }

    bool is_text() const override { return settings_.is_text; }
    bool takes_text() const override { return true; }
    bool takes_bytes() const override { return true; }
    bool takes_names() const override { return settings_.takes_names; }

  private:
    static void pad(nb::list &list, u64 size) {
        while (list.size() < size) list.append(nb::none());
    }
    void put(RowWriter &row, u32 c, nb::object cell) const {
        if (!row.in_list()) return keep(row, c, std::move(cell));
        nb::list &to = row.parts() ? pair_ : list_;
        pad(to, (row.parts() ? u64{row.parts()} : row.elements()) - 1);
        to.append(std::move(cell));
    }
    void keep(RowWriter &row, u32 c, nb::object cell) const {
        values_.push_back(std::move(cell));
        row.put(c, place_, static_cast<u32>(values_.size()));
    }

    const Settings settings_;
    std::vector<nb::object> &values_;
    mutable nb::list list_, pair_;   // the open ones
    Place place_;
};

}  // namespace st
