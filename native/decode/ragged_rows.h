// The ragged cells of the row being written, gathered until it is known that the row is good and the slot has room.
#pragma once
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "decode/decode_plan.h"

namespace st {

class RaggedRows {
  public:
    explicit RaggedRows(const DecodePlan &plan) : of_(plan.blocks.size()) {
        for (u32 b = 0; plan.is_ragged && b < plan.blocks.size(); ++b) {
            const Block &block = plan.layout.blocks[b];
            if (!block.is_ragged()) continue;
            of_[b] = static_cast<u32>(rows_.size());
            rows_.push_back({block.offset, block.values, bytes_of(block.dtype), block.capacity, 0, {}});
        }
    }

    bool any() const { return !rows_.empty(); }

    void start() {
        for (Row &row : rows_) row.count = 0, row.bytes.clear();
    }

    // Replaces what the row has in a ragged block.
    void put(u32 block, const void *values, u64 count) {
        Row &row = rows_[of_[block]];
        row.count = count;
        row.bytes.resize(count * row.element);
        if (count) std::memcpy(row.bytes.data(), values, count * row.element);
    }

    // The same one after the other: none at first.
    void clear(u32 block) {
        rows_[of_[block]].count = 0;
        rows_[of_[block]].bytes.clear();
    }
    template <class T>
    void add(u32 block, T value, u64 most) {   // those behind the first `most` are only counted, until keep()
        Row &row = rows_[of_[block]];
        if (row.count++ >= most) return;
        const u64 at = row.bytes.size();
        row.bytes.resize(at + sizeof value);
        std::memcpy(row.bytes.data() + at, &value, sizeof value);
    }
    void keep(u32 block) {
        Row &row = rows_[of_[block]];
        row.count = row.bytes.size() / row.element;
    }
    u64 count(u32 block) const { return rows_[of_[block]].count; }

    // The largest number of values that a slot has room for, of a block in which the row has more; 0: none.
    u64 exceeded() const {
        for (const Row &row : rows_)
            if (row.count > row.capacity) return row.capacity;
        return 0;
    }

    // Whether row `at` fits behind the rows before it.
    bool fits(const u8 *slot, u64 at) const {
        for (const Row &row : rows_)
            if (used(row, slot, at) + row.count > row.capacity) return false;
        return true;
    }

    void append(u8 *slot, u64 at) const {
        for (const Row &row : rows_) {
            u32 *const ends = reinterpret_cast<u32 *>(slot + row.ends);
            const u64 from = used(row, slot, at);
            ends[at] = static_cast<u32>(from);
            ends[at + 1] = static_cast<u32>(from + row.count);
            if (row.count) std::memcpy(slot + row.values + from * row.element, row.bytes.data(), row.bytes.size());
        }
    }

  private:
    struct Row {
        u64 ends, values;       // of the block, in the slot
        u64 element, capacity;  // bytes of one; of the whole block
        u64 count;
        std::vector<u8> bytes;
    };

    static u64 used(const Row &row, const u8 *slot, u64 at) {
        return at ? reinterpret_cast<const u32 *>(slot + row.ends)[at] : 0;
    }

    std::vector<u32> of_;   // by block
    std::vector<Row> rows_;
};

}  // namespace st
