// msgpack of a table: a map, nested as the columns' paths say, or a map of arrays by name. A number is float32 where
// that is exact or its column a number anyway.
#pragma once
#include <algorithm>
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
        const bool is_nested = table.tree.is_nested();
        u64 given = 0, key_bytes = is_nested ? tree_bytes_ : 0;
        for (u32 c = 0; c < table.columns.size(); ++c)
            if (table.columns[c].given) ++given, key_bytes += keys_[c].size();
        // what most cells need at most: an own size check for each would cost as much as writing it
        const u64 most = 16 + key_bytes + given * (rows.count * CELL_BYTES + 5);
        if (out.size() < most) out.resize(most);
        out_ = &out;
        at_ = 0;
        if (rows.count > 1 && table.has_lists_alone()) {
            put_rows(table, rows, key_bytes);
        } else if (rows.count == 1 && is_nested) {
            put_node(table, rows[0], 0);
        } else {
            head(given, 0x80, 15, 0xde);
            for (u32 c = 0; c < table.columns.size(); ++c)
                if (table.columns[c].given) put_column(table, c, rows);
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

    void bytes(std::string_view raw) {
        out_->resize(out_->size() + raw.size() + 5);
        if (raw.size() < 256) tagged(0xc4, static_cast<u8>(raw.size()));
        else if (raw.size() < 65536) tagged(0xc5, static_cast<u16>(raw.size()));
        else tagged(0xc6, static_cast<u32>(raw.size()));
        put(raw);
    }

    void list(const RowTable &table, const Cell &cell) {
        out_->resize(out_->size() + cell.size * CELL_BYTES + 5);
        head(cell.size, 0x90, 15, 0xdc);
        table.each_element(cell, *this, [](u32) {});
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
    // A map each, where columns would not be told from a row.
    void put_rows(const RowTable &table, const PickedRows &rows, u64 key_bytes) {
        u64 given = 0;
        for (const RowTable::Column &column : table.columns) given += column.given;
        head(rows.count, 0x90, 15, 0xdc);
        for (u64 i = 0; i < rows.count; ++i) {
            out_->resize(out_->size() + key_bytes + 5);
            if (table.tree.is_nested()) {
                put_node(table, rows[i], 0);
                continue;
            }
            head(given, 0x80, 15, 0xde);
            for (u32 c = 0; c < table.columns.size(); ++c)
                if (table.columns[c].given) put_column(table, c, {rows[i], 1, nullptr});
        }
    }
    void put_column(const RowTable &table, u32 c, const PickedRows &rows) {
        put(keys_[c]);
        if (rows.count != 1) head(rows.count, 0x90, 15, 0xdc);
        start_column(table, c);
        for (u64 i = 0; i < rows.count; ++i) table.read(c, rows[i], *this);
    }
    void start_column(const RowTable &table, u32 c) {
        const Kind *kind = table.columns[c].plan.kind.get();
        narrows_ = kind && kind->narrows();
        is_category_ = kind && kind->is_text();
    }

    // What one row holds of the columns below a node.
    void put_node(const RowTable &table, u64 row, u32 node) {
        const KeyTree::Node &of = table.tree.node(node);
        u64 count = node == 0 ? std::ranges::count_if(table.columns, is_other) : 0;
        for (const KeyTree::Entry &each : of.entries)
            if (table.holds(each.target)) count = of.is_array ? static_cast<u64>(each.step.index) + 1 : count + 1;
        if (of.is_array) head(count, 0x90, 15, 0xdc);
        else head(count, 0x80, 15, 0xde);
        i64 index = 0;
        for (u64 i = 0; i < of.entries.size(); ++i) {
            const KeyTree::Entry &each = of.entries[i];
            if (!table.holds(each.target)) continue;
            for (; of.is_array && index < each.step.index; ++index) missing();
            ++index;
            if (!of.is_array) put(tree_keys_[node][i]);
            if (each.target < 0) {
                put_node(table, row, node_of(each.target));
            } else {
                start_column(table, static_cast<u32>(each.target));
                table.read(static_cast<u32>(each.target), row, *this);
            }
        }
        for (u32 c = 0; node == 0 && c < table.columns.size(); ++c)
            if (is_other(table.columns[c])) put_column(table, c, {row, 1, nullptr});
    }
    static bool is_other(const RowTable::Column &column) { return !column.named && column.given; }

    // Each column's name, and each key of the tree, as it stands in a map.
    void learn_keys(const RowTable &table) {
        naming_ = table.naming;
        keys_.resize(table.columns.size());
        for (u32 c = 0; c < keys_.size(); ++c) learn(keys_[c], table.columns[c].plan.name);
        tree_keys_.assign(table.tree.size(), {});
        tree_bytes_ = 0;
        for (u32 node = 0; table.tree.is_nested() && node < table.tree.size(); ++node) {
            const KeyTree::Node &of = table.tree.node(node);
            tree_bytes_ += 5 + (of.is_array ? static_cast<u64>(of.entries.back().step.index) : 0);   // a head, and nils
            for (const KeyTree::Entry &each : of.entries) {
                learn(tree_keys_[node].emplace_back(), each.step.key);
                tree_bytes_ += tree_keys_[node].back().size();
            }
        }
    }
    void learn(std::string &key, std::string_view name) {
        out_ = &key;
        at_ = 0;
        key.clear();
        text(name);
        key.resize(at_);
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
    std::vector<std::string> keys_;                     // of the columns
    std::vector<std::vector<std::string>> tree_keys_;   // of the tree's nodes
    u64 tree_bytes_ = 0;                                // of them, the nodes' heads and what arrays leave out
    u64 naming_ = 0;                                    // of the table that all these are of
    bool narrows_ = false, is_category_ = false;
};

inline std::unique_ptr<RecordEncoder> msgpack_encoder() { return std::make_unique<MsgpackEncoder>(); }

}  // namespace st::formats
