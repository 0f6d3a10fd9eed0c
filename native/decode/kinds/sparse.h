// Pairs of an index, or a name hashed into one, and a number: int32 and float32 in two ragged blocks. A name is hashed
// as a category's text is, or as Vowpal Wabbit does in a namespace.
#pragma once
#include <charconv>

#include "decode/list_kind.h"
#include "decode/vw_hash.h"

namespace st::kinds {

class Sparse final : public Kind {
  public:
    Sparse(const std::string &column, const Options &options)
        : hasher_{static_cast<u32>(options.get<i64>("hash_bits")), murmur3(column.data(), column.size(), 0)},
          buckets_(static_cast<u64>(options.get<i64>("buckets"))), most_(static_cast<u64>(options.get<i64>("most"))),
          names_(buckets_), spread_(static_cast<u64>(options.get<i64>("spread", 1))), cuts_(options.get<bool>("cut")) {
        if (options.has("namespaces")) namespaces_ = options.get<std::vector<std::string>>("namespaces");
        if (!options.has("vw_bits")) return;
        const std::string first = namespaces_.empty() ? "" : namespaces_.front();
        by_vw_ = true;
        names_ = u64{1} << options.get<i64>("vw_bits");
        vw_seed_ = static_cast<u32>(vw_hash(first.data(), first.data() + first.size(), 0));
    }

    const char *expected() const override { return "list of pairs of an index or a name and a number"; }
    void place(SlotPlaces &places) override {
        index_ = places.take_ragged(sizeof(i32));
        scale_ = places.take_ragged(sizeof(f32));
    }

    CellForm form() const override { return CellForm::pairs; }
    void start_list(RowWriter &row, u32) const override {
        row.start_values(index_);
        row.start_values(scale_);
    }
    void end_list(RowWriter &row, u32 c) const override {
        if (row.taken() != 2 * row.elements()) return row.wrong(c, "a missing value");
        end_values(row, c, index_, most_, cuts_);
        row.end_values(c, scale_);
    }
    void end_pair(RowWriter &row, u32 c) const override {
        if (row.parts() != 2) return row.wrong(c, "a list of " + std::to_string(row.parts()));
        if (row.taken() != 2 * row.elements()) row.wrong(c, "a missing value");
    }

    void number(RowWriter &row, u32 c, f64 value) const override {
        if (!row.in_list() || row.parts() == 0) return row.wrong(c, shown_number(value));
        if (row.parts() > 1) return put_scale(row, c, value);
        if (!is_exact_whole(value)) return row.wrong(c, shown_number(value));
        integer(row, c, static_cast<u64>(std::abs(value)), value < 0);
    }
    void integer(RowWriter &row, u32 c, u64 magnitude, bool negative) const override {
        if (row.in_list() && row.parts() == 1) return put_index(row, c, magnitude, negative);
        number(row, c, integer_number(magnitude, negative));
    }
    void long_integer(RowWriter &row, u32 c, f64 rounded, std::string_view digits) const override {
        if (row.in_list() && row.parts() == 1) return out_of_range(row, c, std::string(digits));
        number(row, c, rounded);
    }
    void boolean(RowWriter &row, u32 c, bool value) const override {
        if (row.in_list() && row.parts() > 1) return put_scale(row, c, value);
        row.wrong(c, value ? "true" : "false");
    }
    // A name, or the index that it is.
    void text(RowWriter &row, u32 c, std::string_view utf8) const override {
        if (!row.in_list() || row.parts() != 1) return row.wrong(c, quoted(utf8));
        const char *const end = utf8.data() + utf8.size();
        u64 index = 0;
        const auto [read, error] = std::from_chars(utf8.data(), end, index);
        if (read != end) return take_index(row, hashed(utf8));
        if (error != std::errc()) return out_of_range(row, c, shown(utf8));
        put_index(row, c, index, false);
    }
    void pair(RowWriter &row, u32 c, u64 index, f64 value) const override {
        if (index >= buckets_) return out_of_range(row, c, std::to_string(index));
        take_index(row, index);
        put_scale(row, c, value);
    }
    void stand_in(RowWriter &row, u32 c) const override {
        row.put_values<i32>(c, index_, nullptr, 0);
        row.put_values<f32>(c, scale_, nullptr, 0);
    }

    bool takes_text() const override { return true; }
    const std::vector<std::string> *namespaces() const override {
        return namespaces_.empty() ? nullptr : &namespaces_;
    }

  private:
    u64 hashed(std::string_view name) const {
        const u64 hash = by_vw_ ? vw_hash(name.data(), name.data() + name.size(), vw_seed_) : hasher_(name);
        return spread_ == 1 ? hash % names_ : hash % names_ + buckets_ * (hash / names_ % spread_);
    }
    void put_index(RowWriter &row, u32 c, u64 index, bool negative) const {
        if (index < buckets_ && (!negative || index == 0)) return take_index(row, index);
        out_of_range(row, c, (negative ? "-" : "") + std::to_string(index));
    }
    void take_index(RowWriter &row, u64 index) const {
        row.add_value(index_, static_cast<i32>(index), most_);
        row.take_part();
    }
    void put_scale(RowWriter &row, u32 c, f64 value) const {
        const f32 scale = static_cast<f32>(value);
        if (!fits_float(scale)) return row.not_finite(c, value);
        row.add_value(scale_, scale, most_);
        row.take_part();
    }
    void out_of_range(RowWriter &row, u32 c, const std::string &index) const {
        row.fail(static_cast<i32>(c),
                 "expected an index below " + std::to_string(buckets_) + ", got " + index);
    }

    Place index_, scale_;
    TextHasher hasher_;
    u64 buckets_, most_;
    u64 names_;    // indexes that names are hashed into
    u64 spread_;   // above 1 names lie in so many times the buckets: modulo the buckets is their index
    u32 vw_seed_ = 0;
    bool by_vw_ = false, cuts_;
    std::vector<std::string> namespaces_;
};

inline std::unique_ptr<Kind> sparse(const std::string &column, const Options &options) {
    return std::make_unique<Sparse>(column, options);
}

}  // namespace st::kinds
