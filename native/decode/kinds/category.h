// Text, an integer or a boolean, hashed into buckets: an int32. Integers hash as their decimal text.
#pragma once
#include "decode/column_span.h"
#include "decode/murmur3.h"
#include "decode/row_writer.h"

namespace st::kinds {

class Category final : public Kind {
  public:
    Category(const std::string &column, const Options &options)
        : seed_(murmur3(column.data(), column.size(), 0)) {
        const i64 buckets = options.get<i64>("buckets");
        if (buckets < 1 || buckets > 0x7fffffff)
            throw std::invalid_argument(column + ": buckets must be between 1 and 2^31 - 1");
        buckets_ = static_cast<u32>(buckets);
        inverse_ = ~u64{0} / buckets_ + 1;
        missing_ = bucket(options.get<std::string>("missing_value"));
    }

    const char *expected() const override { return "text, integer or boolean"; }
    void place(SlotPlaces &places) override { place_ = places.take(sizeof(i32)); }

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
    void text(RowWriter &row, u32 c, std::string_view utf8) const override { row.put(c, place_, bucket(utf8)); }
    void stand_in(RowWriter &row, u32 c) const override { row.put(c, place_, missing_); }

    i32 word(std::string_view utf8) const override { return bucket(utf8); }
    i32 stand_in_word() const override { return missing_; }
    void put_word(RowWriter &row, u32 c, std::string_view, i32 word) const override { row.put(c, place_, word); }

    bool takes_spans(CellType type) const override {
        return type >= CellType::text || (type >= CellType::i8 && type <= CellType::u64);
    }
    bool put_span(const ColumnSpan &span, u32 row, RowBlock &rows) const override {
        u8 *to = rows.at(place_);
        const u64 stride = rows.stride(place_);
        const auto put = [to, stride](u32 i, i32 bucket) { std::memcpy(to + i * stride, &bucket, 4); };
        if (span.type == CellType::words) return span.each_word(row, rows.count, put);
        return span.each_number(row, rows.count, [&](u32 i, auto value) {
            char buffer[24];
            const char *end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
            put(i, bucket({buffer, static_cast<u64>(end - buffer)}));
        });
    }
    bool put_texts(const std::string_view *texts, RowBlock &rows) const override {
        u8 *to = rows.at(place_);
        for (u32 i = 0; i < rows.count; ++i, to += rows.stride(place_)) {
            const i32 found = bucket(texts[i]);
            std::memcpy(to, &found, 4);
        }
        return true;
    }
    bool stand_in_span(RowBlock &rows) const override {
        rows.fill(place_, missing_);
        return true;
    }

    bool is_text() const override { return true; }

  private:
    i32 bucket(std::string_view text) const {
        // The remainder without a division (Lemire, Kaser, Kurz: Faster remainder by direct computation, 2019): exact.
        const u64 fraction = inverse_ * murmur3(text.data(), text.size(), seed_);
        return static_cast<i32>(static_cast<unsigned __int128>(fraction) * buckets_ >> 64);
    }

    Place place_;
    u32 seed_, buckets_ = 1;
    u64 inverse_ = 0;   // 2^64 / buckets, rounded up; 0 for 1 bucket
    i32 missing_ = 0;
};

inline std::unique_ptr<Kind> category(const std::string &column, const Options &options) {
    return std::make_unique<Category>(column, options);
}

}  // namespace st::kinds
