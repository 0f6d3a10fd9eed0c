// msgpack of a table: a map, or a map of arrays. A number is float32 where that is exact or its column a number anyway.
#pragma once
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "decode/record_encoder.h"

namespace st::formats {

class MsgpackEncoder final : public RecordEncoder {
  public:
    void encode(const RowTable &table, const PickedRows &rows, std::string &out) override {
        if (table.naming != naming_) learn_keys(table);
        u64 given = 0, key_bytes = 0;
        for (u32 c = 0; c < table.columns.size(); ++c)
            if (table.columns[c].given) ++given, key_bytes += keys_[c].size();
        // what most cells need at most: an own size check for each would cost as much as writing it
        const u64 most = 16 + key_bytes + given * (rows.count * CELL_BYTES + 5);
        if (out.size() < most) out.resize(most);
        out_ = &out;
        at_ = 0;
        head(given, 0x80, 15, 0xde);
        for (u32 c = 0; c < table.columns.size(); ++c) {
            const RowTable::Column &column = table.columns[c];
            if (!column.given) continue;
            put(keys_[c]);
            narrows_ = column.plan.kind && column.plan.kind->narrows();
            is_category_ = column.plan.kind && column.plan.kind->is_text();
            if (rows.count != 1) head(rows.count, 0x90, 15, 0xdc);
            for (u64 i = 0; i < rows.count; ++i) table.read(c, rows[i], *this);
        }
        out.resize(at_);
    }

    // A cell of the current column.
    void missing() { byte(0xc0); }
    void boolean(bool value) { byte(value ? 0xc3 : 0xc2); }
    void integer(u64 magnitude, bool negative) {
        if (!negative || magnitude == 0) return natural(magnitude);
        if (magnitude > u64{1} << 63) return number(-static_cast<f64>(magnitude));
        const i64 value = -static_cast<i64>(magnitude - 1) - 1;
        if (value >= -32) byte(static_cast<u8>(value));
        else if (value >= std::numeric_limits<std::int8_t>::min()) tagged(0xd0, static_cast<u8>(value));
        else if (value >= std::numeric_limits<std::int16_t>::min()) tagged(0xd1, static_cast<u16>(value));
        else if (value >= std::numeric_limits<i32>::min()) tagged(0xd2, static_cast<u32>(value));
        else tagged(0xd3, static_cast<u64>(value));
    }
    void long_integer(f64 rounded, std::string_view digits) {   // msgpack has none: a category's text hashes the same
        if (is_category_) text(digits);
        else number(rounded);
    }
    void number(f64 value) {
        const f32 rounded = static_cast<f32>(value);
        if (static_cast<f64>(rounded) == value || (narrows_ && std::abs(rounded) <= std::numeric_limits<f32>::max()))
            tagged(0xca, std::bit_cast<u32>(rounded));
        else
            tagged(0xcb, std::bit_cast<u64>(value));
    }
    void text(std::string_view text) {
        out_->resize(out_->size() + text.size() + 5);   // on top of what its cell was given
        if (text.size() < 32) byte(0xa0 | static_cast<u8>(text.size()));
        else if (text.size() < 256) tagged(0xd9, static_cast<u8>(text.size()));
        else if (text.size() < 65536) tagged(0xda, static_cast<u16>(text.size()));
        else tagged(0xdb, static_cast<u32>(text.size()));
        put(text);
    }

  private:
    static constexpr u64 CELL_BYTES = 9;   // of the largest cell but text

    void natural(u64 value) {
        if (value < 0x80) byte(static_cast<u8>(value));
        else if (value <= 0xff) tagged(0xcc, static_cast<u8>(value));
        else if (value <= 0xffff) tagged(0xcd, static_cast<u16>(value));
        else if (value <= 0xffffffff) tagged(0xce, static_cast<u32>(value));
        else tagged(0xcf, value);
    }
    void head(u64 count, u8 fix, u64 most, u8 tag16) {
        if (count <= most) byte(fix | static_cast<u8>(count));
        else if (count <= 0xffff) tagged(tag16, static_cast<u16>(count));
        else tagged(tag16 + 1, static_cast<u32>(count));
    }
    // Each column's name as it stands in a map.
    void learn_keys(const RowTable &table) {
        naming_ = table.naming;
        keys_.resize(table.columns.size());
        for (u32 c = 0; c < keys_.size(); ++c) {
            out_ = &keys_[c];
            at_ = 0;
            text(table.columns[c].plan.name);
            keys_[c].resize(at_);
        }
    }
    void put(std::string_view bytes) {
        std::memcpy(out_->data() + at_, bytes.data(), bytes.size());
        at_ += bytes.size();
    }
    void byte(u8 value) { (*out_)[at_++] = static_cast<char>(value); }
    template <class T>
    void tagged(u8 tag, T value) {
        byte(tag);
        if constexpr (sizeof value == 2) value = __builtin_bswap16(value);
        if constexpr (sizeof value == 4) value = __builtin_bswap32(value);
        if constexpr (sizeof value == 8) value = __builtin_bswap64(value);
        std::memcpy(out_->data() + at_, &value, sizeof value);
        at_ += sizeof value;
    }

    std::string *out_ = nullptr;
    u64 at_ = 0;
    std::vector<std::string> keys_;
    u64 naming_ = 0;   // of the table that keys_ are of
    bool narrows_ = false, is_category_ = false;
};

inline std::unique_ptr<RecordEncoder> msgpack_encoder() { return std::make_unique<MsgpackEncoder>(); }

}  // namespace st::formats
