// The job's columns compiled for decoding: where each cell goes in a slot, what it may hold, what stands in when it is
// missing. Made once per process from streamtrain/columns/schema.py; read-only afterwards, shared by all decoders.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ring/slot.h"
#include "decode/key_table.h"

namespace st {

enum class Target : u8 { number, category, label_number, label_binary, label_class, weight, event_time, ignored };
enum class Missing : u8 { dead_letter, skip, value };
enum BlockIndex : u8 { NUMBERS, CATEGORIES, LABEL, WEIGHT, BLOCK_KINDS };

struct PlanColumn {
    std::string name;
    Target target = Target::ignored;
    Missing missing = Missing::dead_letter;
    BlockIndex block = NUMBERS;
    u32 row_offset = 0;             // bytes into the block's row
    u32 buckets = 0;                // category
    u32 seed = 0;                   // category: murmur3 of the name
    u32 class_count = 0;            // label_class, label_binary with class names
    bool names_are_integers = false;   // a class name is an integer's text: integers are then names, never an index
    std::vector<std::string> classes;
    i32 unit_numerator = 1, unit_divisor = 1;   // event_time: milliseconds of one unit
    // What stands in for a missing cell: a category's text, else a number (a class index, milliseconds of an
    // event_time).
    void set_missing(std::string_view text);
    void set_missing(f64 value);

    u32 missing_bits = 0;           // the float32 or int32 written when missing
    i64 missing_time_ms = -1;       // the same of an event_time

    const char *expected() const;   // "number", for reasons
};

struct DecodePlan {
    std::vector<PlanColumn> columns;      // in written order: the order of array rows
    std::vector<u32> short_columns;   // requests: the order of array rows that leave out label and weight; else empty
    SlotLayout layout;
    KeyTable keys;
    bool has[BLOCK_KINDS] = {};
    u64 offset[BLOCK_KINDS] = {};         // of each block in the slot
    u64 stride[BLOCK_KINDS] = {};         // bytes of a row of it
    bool weight_is_one = true;            // no column gives the weight

    // Throws std::invalid_argument if a column does not fit the layout (a mistake of ours, not of data).
    static std::shared_ptr<const DecodePlan> make(std::vector<PlanColumn> columns, std::vector<u32> short_columns,
                                                  SlotLayout layout);

    // Zeroes what lies behind `rows` up to the capacity: a decoder may leave parts of a row it gave up there.
    void clear_behind(u8 *slot, u32 rows) const;
};

// The names make_decoder() knows, in alphabetical order.
std::vector<std::string> decoder_formats();

}  // namespace st
