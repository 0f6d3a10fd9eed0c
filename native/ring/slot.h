// One slot of the ring: header, ranges, blocks. Ingest alone writes it, between taking it and publishing its number;
// after that it is read-only until the coordinator has copied its log and frees it.
#pragma once
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/types.h"

namespace st {

// Rows of one partition in row order, from (from_offset, from_row) to (to_offset, to_row). A position (offset, row)
// says: the next record is `offset`, and `row` rows of it are used already; a range that ends inside a record has
// to_offset = that record and to_row > 0, and its record_rows is -1 until the range that ends the record, which carries
// the record's row count when the record straddled ranges.
struct Range {
    i64 from_offset, to_offset;
    i32 from_row, to_row;
    i32 partition;
    i32 record_rows;      // rows of the last record if this range completes one begun in an earlier range; else -1
    u32 trained;          // rows in the slot from this range
    u32 dead;             // rows dead-lettered by the decoder (an undecodable remainder counts as 1)
    u32 filtered;         // rows left out by a column's missing = "skip"
    u32 tombstones;       // records without a value
    u32 records;          // records that ended in this range
    u32 reserved[3];
};
static_assert(sizeof(Range) == 64);

// At `offset` bytes from the slot's start, 64-byte aligned: rows x width elements of dtype. Or, where `values` is not
// 0, ragged: there u32 ends[rows + 1], of which the first is 0, and at `values` the elements of row r from ends[r] up
// to ends[r + 1]. `capacity`: of elements in all rows together; of a ragged block at least what one row may have.
struct Block {
    char name[24];
    Dtype dtype;
    u32 width;
    u64 offset;
    u64 values;
    u64 capacity;

    bool is_ragged() const { return values != 0; }
};

struct SlotHeader {
    i64 number;           // counts the slots of a run from 0
    i64 round;
    u32 rows;             // rows decoded into the slot; the rest up to its capacity is zero
    u32 range_count;
    i64 newest_timestamp_ms;   // of the records in the slot, -1 if none
    i64 newest_event_time_ms;  // of the event_time column, -1 if none
    u64 reserved[3];
};
static_assert(sizeof(SlotHeader) == 64);

// Where things lie in a slot; the same for every slot of a ring, every snapshot reader and the replay.
struct SlotLayout {
    u32 row_capacity = 0;
    u32 range_capacity = 0;
    std::vector<Block> blocks;
    u64 ranges_offset = sizeof(SlotHeader);
    u64 slot_bytes = 0;

    struct BlockSpec {
        std::string name;
        Dtype dtype;
        u32 width;             // elements of a row; of a ragged block in the mean
        bool ragged = false;
        u64 least = 0;         // elements that there is room for, however few the rows
    };

    static SlotLayout make(u32 row_capacity, u32 range_capacity, const std::vector<BlockSpec> &specs) {
        SlotLayout layout;
        layout.row_capacity = row_capacity;
        layout.range_capacity = range_capacity;
        u64 at = align64(layout.ranges_offset + u64{range_capacity} * sizeof(Range));
        for (const BlockSpec &spec : specs) {
            Block block{};
            std::strncpy(block.name, spec.name.c_str(), sizeof block.name - 1);
            block.dtype = spec.dtype;
            block.width = spec.width;
            block.offset = at;
            block.capacity = std::max(u64{row_capacity} * spec.width, spec.least);
            if (spec.ragged) {
                at += align64((u64{row_capacity} + 1) * sizeof(u32));
                block.values = at;
            }
            at += align64(block.capacity * bytes_of(spec.dtype));
            layout.blocks.push_back(block);
        }
        layout.slot_bytes = at;
        return layout;
    }

    // Zeroes what lies behind `rows` up to the capacity; ragged rows there are empty.
    void clear_from(u8 *slot, u32 rows) const {
        for (const Block &block : blocks) {
            const u64 element = bytes_of(block.dtype), whole = block.capacity * element;
            u64 used = u64{rows} * block.width * element;
            if (block.is_ragged()) {
                u32 *const ends = reinterpret_cast<u32 *>(slot + block.offset);
                if (rows == 0) ends[0] = 0;
                for (u32 row = rows; row < row_capacity; ++row) ends[row + 1] = ends[rows];
                used = ends[rows] * element;
            }
            std::memset(slot + (block.is_ragged() ? block.values : block.offset) + used, 0, whole - used);
        }
    }

    const Block *find(const char *name) const {
        for (const Block &block : blocks)
            if (std::strcmp(block.name, name) == 0) return &block;
        return nullptr;
    }
};

}  // namespace st
