// What is learned, as the loss has it: a number (float32), one from 0 on, 0 or 1 (float32), or a class by name or index
// (int32).
#pragma once
#include <algorithm>

#include "decode/canonical_kind.h"
#include "decode/name_table.h"
#include "decode/number_kind.h"

namespace st::kinds {

class Label : public NumberKind {
  public:
    using NumberKind::NumberKind;

    void place(SlotPlaces &places) final { place_ = places.take(4); }
    void stand_in(RowWriter &row, u32 c) const final { row.put(c, place_, missing_bits_); }
    bool stand_in_span(RowBlock &rows) const final {
        rows.fill(place_, missing_bits_);
        return true;
    }
    bool refuses_text() const final { return false; }   // the decoder answers it

  protected:
    Place place_;
    u32 missing_bits_ = 0;
};

class NumberLabel : public Label {
  public:
    explicit NumberLabel(const Options &options) : Label(options) {
        missing_bits_ = std::bit_cast<u32>(static_cast<f32>(options.number("missing_value")));
    }

    const char *expected() const override { return "number"; }
    void number(RowWriter &row, u32 c, f64 value) const override {
        const f32 rounded = static_cast<f32>(value);
        if (!fits_float(rounded)) return row.not_finite(c, value);
        row.put(c, place_, rounded);
    }
    bool takes_spans(CellType type) const override { return type <= CellType::boolean; }
    bool put_span(const ColumnSpan &span, u32 row, RowBlock &rows) const override {
        return put_floats(span, row, rows, place_, [](f32 value) { return fits_float(value); });
    }
    bool is_float() const override { return true; }
};

// A count, or an amount: a finite float32 not below 0.
class CountLabel final : public NumberLabel {
  public:
    using NumberLabel::NumberLabel;

    const char *expected() const override { return "number not below 0"; }
    void number(RowWriter &row, u32 c, f64 value) const override {
        if (value < 0 && fits_float(static_cast<f32>(value))) return row.wrong(c, shown_number(value));
        NumberLabel::number(row, c, value);
    }
    // Not of f64, which may be below 0 and round to it.
    bool takes_spans(CellType type) const override { return type <= CellType::boolean && type != CellType::f64; }
    bool put_span(const ColumnSpan &span, u32 row, RowBlock &rows) const override {
        return put_floats(span, row, rows, place_, [](f32 value) { return fits_float(value) & (value >= 0); });
    }
};

// Classes by name, by index where the names are no integers; without names by index.
class ClassLabel : public Label {
  public:
    explicit ClassLabel(const Options &options)
        : Label(options), classes_(options.get<std::vector<std::string>>("classes")), names_(classes_),
          count_(static_cast<u32>(options.get<i64>("class_count"))) {
        names_are_booleans_ = names_.find("true") >= 0 || names_.find("false") >= 0;
        names_are_integers_ = std::any_of(classes_.begin(), classes_.end(), is_integer_text);
        missing_bits_ = static_cast<u32>(static_cast<i32>(options.number("missing_value")));
    }

    const char *expected() const override {
        return classes_.empty() ? "class index" : "one of the class names or their index";
    }
    void number(RowWriter &row, u32 c, f64 value) const override {
        if (!is_exact_whole(value)) return row.wrong(c, shown_number(value));
        integer(row, c, static_cast<u64>(std::abs(value)), value < 0);
    }
    void integer(RowWriter &row, u32 c, u64 magnitude, bool negative) const override {
        char buffer[24];
        const std::string_view digits = integer_text(magnitude, negative, buffer);
        if (names_are_integers_) return name(row, c, digits, digits);
        if ((negative && magnitude) || magnitude >= count_) return row.wrong(c, digits);
        put_class(row, c, static_cast<u32>(magnitude));
    }
    void boolean(RowWriter &row, u32 c, bool value) const override {
        const char *text = value ? "true" : "false";
        if (classes_.empty()) row.wrong(c, text);
        else name(row, c, text, text);
    }
    void text(RowWriter &row, u32 c, std::string_view utf8) const override {
        if (classes_.empty()) NumberKind::text(row, c, utf8);
        else if (is_missing_word(utf8)) row.missing(c, quoted(utf8));
        else name(row, c, utf8, quoted(utf8));
    }
    void written(RowWriter &row, u32 c, std::string_view utf8) const override {
        const i32 found = names_.find(utf8);
        if (found >= 0) put_class(row, c, static_cast<u32>(found));
        else NumberKind::written(row, c, utf8);
    }
    bool is_missing_word(std::string_view utf8) const override {
        return names_.find(utf8) < 0 && Label::is_missing_word(utf8);
    }
    bool takes_text() const override { return parses_ || !classes_.empty(); }
    bool takes_names() const override { return !classes_.empty(); }

    i32 word(std::string_view utf8) const override { return names_.find(utf8); }
    void put_word(RowWriter &row, u32 c, std::string_view, i32 word) const override {
        put_class(row, c, static_cast<u32>(word));
    }
    i32 stand_in_word() const override { return static_cast<i32>(missing_bits_); }

    bool takes_spans(CellType type) const override {
        if (is_hash(type) || type == CellType::floats || type == CellType::list) return false;
        return type >= CellType::text ? !classes_.empty() : type <= CellType::u64 && !names_are_integers_;
    }
    bool put_span(const ColumnSpan &span, u32 row, RowBlock &rows) const override {
        return put_classes<i32>(span, row, rows);
    }
    bool put_texts(const std::string_view *texts, RowBlock &rows) const override { return put_names<i32>(texts, rows); }

  protected:
    bool has_words() const override { return std::all_of(classes_.begin(), classes_.end(), is_integer_text); }
    virtual void put_class(RowWriter &row, u32 c, u32 index) const { row.put(c, place_, index); }

    void name(RowWriter &row, u32 c, std::string_view text, std::string_view got) const {
        const i32 found = names_.find(text);
        if (found < 0) row.wrong(c, got);
        else put_class(row, c, static_cast<u32>(found));
    }

    // By words, or by index; false where a cell is no class.
    template <class T>
    bool put_classes(const ColumnSpan &span, u32 row, RowBlock &rows) const {
        u8 *to = rows.at(place_);
        const u64 stride = rows.stride(place_);
        const auto put = [to, stride](u32 i, i32 index) {
            const T value = static_cast<T>(index);
            std::memcpy(to + i * stride, &value, sizeof value);
        };
        if (span.type == CellType::words) return span.each_word(row, rows.count, put);
        bool good = true;
        const f64 count = count_;
        return span.each_number(row, rows.count, [&](u32 i, auto given) {
            const f64 value = static_cast<f64>(given);
            const bool in_range = value >= 0 && value < count;
            // GCC makes -0.0 of an integer that was -0.0 before, hence abs()
            const i32 index = in_range ? static_cast<i32>(std::abs(value)) : 0;
            good &= in_range && index == value;
            put(i, index);
        }) && good;
    }

    template <class T>
    bool put_names(const std::string_view *texts, RowBlock &rows) const {
        i32 found[BLOCK_ROWS];
        if (!names_.find(texts, rows.count, found)) return false;
        u8 *to = rows.at(place_);
        for (u32 i = 0; i < rows.count; ++i, to += rows.stride(place_)) {
            const T value = static_cast<T>(found[i]);
            std::memcpy(to, &value, sizeof value);
        }
        return true;
    }

    static bool is_integer_text(const std::string &text) {
        const u64 from = !text.empty() && text[0] == '-';
        return text.size() > from && text.find_first_not_of("0123456789", from) == std::string::npos;
    }

    std::vector<std::string> classes_;
    NameTable names_;
    u32 count_;   // 0: not given
    bool names_are_integers_ = false;   // integers are then names, never an index
    bool names_are_booleans_ = false;   // so are booleans
};

class BinaryLabel final : public ClassLabel {
  public:
    explicit BinaryLabel(const Options &options) : ClassLabel(options) {
        missing_bits_ = std::bit_cast<u32>(static_cast<f32>(options.number("missing_value")));
    }

    const char *expected() const override {
        return count_ ? "one of the class names, 0, 1, true or false" : "0, 1, true or false";
    }
    void number(RowWriter &row, u32 c, f64 value) const override {
        if (count_ && is_exact_whole(value)) return integer(row, c, static_cast<u64>(std::abs(value)), value < 0);
        if (value == 0 || value == 1) return put_class(row, c, value == 1);
        row.wrong(c, shown_number(value));
    }
    void integer(RowWriter &row, u32 c, u64 magnitude, bool negative) const override {
        if (count_) ClassLabel::integer(row, c, magnitude, negative);
        else if (magnitude <= 1 && !(negative && magnitude)) put_class(row, c, static_cast<u32>(magnitude));
        else Kind::integer(row, c, magnitude, negative);
    }
    void boolean(RowWriter &row, u32 c, bool value) const override {
        if (names_are_booleans_) ClassLabel::boolean(row, c, value);
        else put_class(row, c, value);
    }
    void written(RowWriter &row, u32 c, std::string_view utf8) const override {
        const bool is_true = utf8 == "true";
        if ((is_true || utf8 == "false") && word(utf8) < 0) boolean(row, c, is_true);
        else ClassLabel::written(row, c, utf8);
    }
    i32 stand_in_word() const override {
        const f32 value = std::bit_cast<f32>(missing_bits_);
        return value >= 0 ? static_cast<i32>(value) : NO_WORD;   // a NaN stands for no label
    }

    // Of numbers not f64 without classes, which may round to 0 or 1.
    bool takes_spans(CellType type) const override {
        return count_ ? ClassLabel::takes_spans(type) : type <= CellType::boolean && type != CellType::f64;
    }
    bool put_span(const ColumnSpan &span, u32 row, RowBlock &rows) const override {
        if (count_) return put_classes<f32>(span, row, rows);
        return put_floats<true>(span, row, rows, place_, [](f32 v) { return (v == 0) | (v == 1); });
    }
    bool put_texts(const std::string_view *texts, RowBlock &rows) const override { return put_names<f32>(texts, rows); }
    bool is_float() const override { return count_ == 0; }

  private:
    void put_class(RowWriter &row, u32 c, u32 index) const override { row.put(c, place_, static_cast<f32>(index)); }
};

inline std::unique_ptr<Kind> label_of(const std::string &is, const Options &options) {
    if (is == "number") return std::make_unique<NumberLabel>(options);
    if (is == "count") return std::make_unique<CountLabel>(options);
    if (is == "binary") return std::make_unique<BinaryLabel>(options);
    if (is == "class") return std::make_unique<ClassLabel>(options);
    throw std::invalid_argument("no label is a " + is);
}

inline std::unique_ptr<Kind> label(const std::string &, const Options &options) {
    const auto is = options.get<std::string>("is");
    return is == "number" || is == "count" ? label_of(is, options) : canonical(label_of(is, options), options);
}

}  // namespace st::kinds
