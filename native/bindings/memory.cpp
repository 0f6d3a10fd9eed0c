#include "base/limits.h"
#include "bindings/bindings.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>

#include "base/fail.h"
#include "bindings/struct_layout.h"
#include "ring/dead_letter_ring.h"
#include "ring/slot.h"

namespace st {
namespace {

template <class Names>
u32 index_of(const Names &names, const std::string &name, const char *what) {
    std::string known;
    u32 index = 0;
    for (const char *each : names) {
        if (name == each) return index;
        known += (index++ ? ", " : "") + std::string(each);
    }
    mistake(what, "one of " + known, name);
}

using NamedBlock = std::tuple<std::string, std::string, u32>;   // name, dtype, width
using RaggedBlock = std::tuple<std::string, std::string, u32, bool>;   // and whether it is ragged
using RoomyBlock = std::tuple<std::string, std::string, u32, bool, u64>;   // and of how many elements at least

SlotLayout slot_layout(u32 row_capacity, u32 range_capacity,
                       const std::vector<std::variant<NamedBlock, RaggedBlock, RoomyBlock>> &blocks) {
    if (row_capacity == 0 || range_capacity == 0) mistake("SlotLayout.make", "at least one row and one range", "0");
    std::vector<SlotLayout::BlockSpec> specs;
    for (const auto &given : blocks) {
        const auto [name, dtype, width, ragged, least] = std::visit(
            [](const auto &parts) -> RoomyBlock {
                constexpr u64 count = std::tuple_size_v<std::decay_t<decltype(parts)>>;
                if constexpr (count == 3) return std::tuple_cat(parts, std::tuple(false, u64{0}));
                else if constexpr (count == 4) return std::tuple_cat(parts, std::tuple(u64{0}));
                else return parts;
            },
            given);
        if (name.empty() || name.size() >= sizeof(Block::name))
            mistake("SlotLayout.make", "a name of 1 to 23 bytes", name);
        if (width == 0) mistake("SlotLayout.make block " + name, "a width of 1 or more", "0");
        const auto known = static_cast<Dtype>(index_of(DTYPE_NAMES, dtype, "SlotLayout.make dtype"));
        specs.push_back({name, known, width, ragged, least});
        if (ragged && std::max(least, u64{row_capacity} * width) > 0x7fffffff)   // ends are int32 to kernels
            mistake("SlotLayout.make block " + name, "below 2^31 elements", "more");
    }
    return SlotLayout::make(row_capacity, range_capacity, specs);
}

void bind_slot_structs(nb::module_ &m) {
    {
        using Struct = SlotHeader;
        m.attr("SLOT_HEADER") = struct_layout(
            {ST_FIELD(number), ST_FIELD(round), ST_FIELD(rows), ST_FIELD(range_count), ST_FIELD(newest_timestamp_ms),
             ST_FIELD(newest_event_time_ms), ST_FIELD(reserved)}, sizeof(Struct));
    }
    {
        using Struct = Range;
        m.attr("RANGE") = struct_layout(
            {ST_FIELD(from_offset), ST_FIELD(to_offset), ST_FIELD(from_row), ST_FIELD(to_row), ST_FIELD(partition),
             ST_FIELD(record_rows), ST_FIELD(trained), ST_FIELD(dead), ST_FIELD(filtered), ST_FIELD(tombstones),
             ST_FIELD(records), ST_FIELD(reserved)}, sizeof(Struct));
    }
}

void bind_dead_letter_structs(nb::module_ &m) {
    {
        using Struct = DeadLetterHead;
        m.attr("DEAD_LETTER_HEAD") = struct_layout(
            {ST_FIELD(entry_bytes), ST_FIELD(round), ST_FIELD(slot), ST_FIELD(offset), ST_FIELD(rows_left_out),
             ST_FIELD(partition), ST_FIELD(ranges), ST_FIELD(key_bytes), ST_FIELD(value_bytes), ST_FIELD(header_bytes),
             ST_FIELD(around_left_out), ST_FIELD(record_bytes)}, sizeof(Struct));
    }
    {
        using Struct = DeadLetterRows;
        m.attr("DEAD_LETTER_ROWS") = struct_layout(
            {ST_FIELD(row_from), ST_FIELD(row_to), ST_FIELD(path_bytes), ST_FIELD(reason_bytes)}, sizeof(Struct));
    }
    {
        using Struct = DeadLetterHeaderSizes;
        m.attr("DEAD_LETTER_HEADER_SIZES") =
            struct_layout({ST_FIELD(name_bytes), ST_FIELD(value_bytes)}, sizeof(Struct));
    }
}

}  // namespace

void bind_memory(nb::module_ &m) {
    bind_slot_structs(m);
    bind_dead_letter_structs(m);
    m.attr("MAX_WORKERS") = MAX_WORKERS;
    m.attr("MAX_PARTITIONS") = MAX_PARTITIONS;
    m.attr("SCHEMA_ENTRY") = SCHEMA_ENTRY;
    m.attr("SCHEMA_TEXT_LIMIT") = SCHEMA_TEXT_LIMIT;
    m.attr("MAX_COLUMNS") = MAX_COLUMNS;
    m.attr("MAX_CLASSES") = MAX_CLASSES;
    m.attr("DEAD_LETTER_KEY_BYTES") = DEAD_LETTER_KEY_LIMIT;

    nb::class_<Block>(m, "Block")
        .def_prop_ro("name", [](const Block &block) { return std::string(block.name); })
        .def_prop_ro("dtype", [](const Block &block) { return name_of(block.dtype); })
        .def_ro("width", &Block::width)
        .def_ro("offset", &Block::offset, "Offset in the slot; of a ragged block that of its ends, u32 [rows + 1].")
        .def_ro("values", &Block::values, "Offset of a ragged block's values; 0 if it is not ragged.")
        .def_ro("capacity", &Block::capacity, "Elements of all rows.")
        .def_prop_ro("ragged", &Block::is_ragged);
    nb::class_<SlotLayout>(m, "SlotLayout")
        .def_static("make", &slot_layout, nb::arg("row_capacity"), nb::arg("range_capacity"), nb::arg("blocks"),
                    "`blocks`: name, dtype, width of a row, whether it is ragged, elements there is room for at least.")
        .def_ro("row_capacity", &SlotLayout::row_capacity)
        .def_ro("range_capacity", &SlotLayout::range_capacity)
        .def_ro("blocks", &SlotLayout::blocks)
        .def_ro("slot_bytes", &SlotLayout::slot_bytes);
}

}  // namespace st
