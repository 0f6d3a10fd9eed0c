// A category's hash itself, of which the model's plan makes what it likes: an int64 of the same bits.
#pragma once
#include "decode/cell_kind.h"
#include "decode/column_span.h"

namespace st {

class HashKind : public Kind {
  public:
    HashKind(const std::string &column, const Options &options)
        : hasher_{static_cast<u32>(options.get<i64>("hash_bits")), murmur3(column.data(), column.size(), 0)},
          missing_(hash(options.get<std::string>("missing_value"))) {}

    const char *expected() const override { return "text, integer or boolean"; }
    void place(SlotPlaces &places) override { place_ = places.take(sizeof(i64)); }

    void number(RowWriter &row, u32 c, f64 value) const override {
        if (!is_exact_whole(value)) return row.wrong(c, shown_number(value));
        integer(row, c, static_cast<u64>(std::abs(value)), value < 0);
    }
    void integer(RowWriter &row, u32 c, u64 magnitude, bool negative) const override {
        char buffer[24];
        text(row, c, integer_text(magnitude, negative, buffer));
    }
    void long_integer(RowWriter &row, u32 c, f64, std::string_view digits) const override { text(row, c, digits); }
    void boolean(RowWriter &row, u32 c, bool value) const override { text(row, c, value ? "true" : "false"); }
    void text(RowWriter &row, u32 c, std::string_view utf8) const override { row.put(c, place_, hash(utf8)); }
    void stand_in(RowWriter &row, u32 c) const override { row.put(c, place_, missing_); }

    void hashed(RowWriter &row, u32 c, const TextHash &given) const override {
        if (given.by.bits != hasher_.bits)
            return row.wrong(c, "a hash of " + std::to_string(given.by.bits) + " bits");
        if (given.by.seed != hasher_.seed) return row.wrong(c, "the hash of another column");
        row.put(c, place_, static_cast<i64>(given.value));
    }
    const TextHasher *hasher() const override { return &hasher_; }

    bool takes_spans(CellType type) const override {
        return type == CellType::text || is_hash(type) || (type >= CellType::i8 && type <= CellType::u64);
    }
    bool put_span(const ColumnSpan &span, u32 row, RowBlock &rows) const override {
        const auto put = [to = rows.at(place_), stride = rows.stride(place_)](u32 i, i64 found) {
            std::memcpy(to + i * stride, &found, 8);
        };
        if (is_hash(span.type)) {
            if (span.seed != hasher_.seed || 8 * span.width != hasher_.bits) return false;
            const char *const from = span.data + u64{span.width} * row;
            for (u32 i = 0; i < rows.count; ++i)
                put(i, span.width == 8 ? static_cast<i64>(load_little<u64>(from + 8 * u64{i}))
                                       : static_cast<i64>(load_little<u32>(from + 4 * u64{i})));
            return true;
        }
        return span.each_number(row, rows.count, [&](u32 i, auto value) {
            char buffer[24];
            const char *end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
            put(i, hash({buffer, static_cast<u64>(end - buffer)}));
        });
    }
    bool put_texts(const std::string_view *texts, RowBlock &rows) const override {
        u8 *to = rows.at(place_);
        for (u32 i = 0; i < rows.count; ++i, to += rows.stride(place_)) {
            const i64 found = hash(texts[i]);
            std::memcpy(to, &found, 8);
        }
        return true;
    }
    // Hashes that this column's hasher has taken.
    void put_own(const u64 *hashes, RowBlock &rows) const {
        u8 *to = rows.at(place_);
        for (u32 i = 0; i < rows.count; ++i, to += rows.stride(place_)) std::memcpy(to, hashes + i, 8);
    }
    bool stand_in_span(RowBlock &rows) const override {
        rows.fill(place_, missing_);
        return true;
    }

    bool is_text() const override { return true; }

  private:
    i64 hash(std::string_view utf8) const { return static_cast<i64>(hasher_(utf8)); }

    Place place_;
    const TextHasher hasher_;
    const i64 missing_;
};

}  // namespace st
