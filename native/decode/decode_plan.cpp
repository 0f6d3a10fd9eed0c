#include "decode/decode_plan.h"

#include <bit>
#include <stdexcept>

#include "decode/murmur3.h"

namespace st {

const char *PlanColumn::expected() const {
    switch (target) {
        case Target::number:
        case Target::label_number: return "number";
        case Target::category: return "text, integer or boolean";
        case Target::label_binary:
            return class_count ? "one of the class names, 0, 1, true or false" : "0, 1, true or false";
        case Target::label_class: return classes.empty() ? "class index" : "one of the class names or their index";
        case Target::weight: return "number not below 0";
        case Target::event_time: return "number (a time)";
        case Target::ignored: return "anything";
    }
    return "";
}

void PlanColumn::set_missing(std::string_view text) {
    missing = Missing::value;
    const u32 own_seed = murmur3(name.data(), name.size(), 0);
    missing_bits = murmur3(text.data(), text.size(), own_seed) % (buckets ? buckets : 1);
}

void PlanColumn::set_missing(f64 value) {
    missing = Missing::value;
    missing_time_ms = static_cast<i64>(value);
    missing_bits =
        target == Target::label_class ? static_cast<u32>(value) : std::bit_cast<u32>(static_cast<f32>(value));
}

namespace {

bool is_integer_text(const std::string &text) {
    u64 from = !text.empty() && text[0] == '-';
    return text.size() > from && text.find_first_not_of("0123456789", from) == std::string::npos;
}

BlockIndex block_of(Target target) {
    switch (target) {
        case Target::number: return NUMBERS;
        case Target::category: return CATEGORIES;
        case Target::weight: return WEIGHT;
        default: return LABEL;
    }
}

}  // namespace

std::shared_ptr<const DecodePlan> DecodePlan::make(std::vector<PlanColumn> columns, std::vector<u32> short_columns,
                                                         SlotLayout layout) {
    auto plan = std::make_shared<DecodePlan>();
    plan->layout = std::move(layout);
    const char *names[BLOCK_KINDS] = {"numbers", "categories", "label", "weight"};
    for (u32 b = 0; b < BLOCK_KINDS; ++b) {
        const Block *block = plan->layout.find(names[b]);
        plan->has[b] = block != nullptr;
        if (!block) continue;
        if (bytes_of(block->dtype) != 4)
            throw std::invalid_argument(std::string(names[b]) + ": elements must have 4 bytes");
        plan->offset[b] = block->offset;
        plan->stride[b] = u64{block->width} * 4;
    }
    u32 used[BLOCK_KINDS] = {};
    std::vector<std::string> keys;
    for (PlanColumn &column : columns) {
        keys.push_back(column.name);
        column.seed = murmur3(column.name.data(), column.name.size(), 0);
        for (const std::string &name : column.classes) column.names_are_integers |= is_integer_text(name);
        if (column.target == Target::ignored || column.target == Target::event_time) continue;
        column.block = block_of(column.target);
        column.row_offset = 4 * used[column.block]++;
        if (column.row_offset >= plan->stride[column.block])
            throw std::invalid_argument(column.name + ": the slot layout has no place for it in its block");
        if (column.target == Target::weight) plan->weight_is_one = false;
    }
    for (u32 i : short_columns)
        if (i >= columns.size()) throw std::invalid_argument("a short column's index is out of range");
    plan->short_columns = std::move(short_columns);
    plan->keys.build(keys);
    plan->columns = std::move(columns);
    return plan;
}

void DecodePlan::clear_behind(u8 *slot, u32 rows) const {
    for (u32 b = 0; b < BLOCK_KINDS; ++b)
        if (has[b]) std::memset(slot + offset[b] + rows * stride[b], 0, (layout.row_capacity - rows) * stride[b]);
}

}  // namespace st
