#include "decode/decode_plan.h"

#include <bit>
#include <stdexcept>

namespace st {

namespace {

DecodePlan::Bits bits_of(const SlotLayout &layout, const Constant &constant) {
    for (u32 b = 0; b < layout.blocks.size(); ++b) {
        if (constant.block != layout.blocks[b].name) continue;
        const f32 value = static_cast<f32>(constant.value);
        if (layout.blocks[b].dtype == Dtype::f32 && layout.blocks[b].width == 1 && !layout.blocks[b].is_ragged())
            return {{b, 0}, std::bit_cast<u32>(value)};
    }
    throw std::invalid_argument(constant.block + ": a constant needs a block of one float32 a row");
}

}  // namespace

std::shared_ptr<const DecodePlan> DecodePlan::make(std::vector<PlanColumn> columns, std::vector<u32> short_columns,
                                                   SlotLayout layout, const std::vector<Constant> &constants,
                                                   std::shared_ptr<const TransformPlan> transforms,
                                                   bool refuses_empty) {
    auto plan = std::make_shared<DecodePlan>();
    plan->refuses_empty = refuses_empty;
    plan->layout = std::move(layout);
    plan->transforms = std::move(transforms);
    for (const Block &block : plan->layout.blocks)
        plan->blocks.push_back({block.offset, block.is_ragged() ? 0 : u64{block.width} * bytes_of(block.dtype)});
    SlotPlaces places(*plan);
    std::vector<std::string> names;
    std::vector<i32> numbers;
    bool has_floats = false;
    for (PlanColumn &column : columns) {
        if (column.place.empty()) column.place = "." + column.name;
        numbers.push_back(static_cast<i32>(names.size()));
        if (column.in_record()) plan->array_columns.push_back(static_cast<u32>(names.size()));
        plan->wanted.push_back(column.kind && column.in_record());
        if (plan->wanted.back()) plan->tree.add(static_cast<u32>(names.size()), column.name, column.path);
        names.push_back(column.name);
        if (!column.kind) continue;
        plan->heads += column.missing == Missing::head;
        plan->made_heads += column.missing == Missing::head && column.is_made;
        places.start(column);
        column.kind->place(places);
        plan->is_ragged |= column.is_ragged = places.any_ragged();
        if (const PlainFloat *floats = column.kind->plain_float()) {
            if (has_floats && floats->place.block != plan->floats_block)
                throw std::invalid_argument(column.name + ": plain floats lie in one block");
            plan->floats_block = floats->place.block;
            plan->has_doubles = floats->is_double;
            has_floats = true;
        }
    }
    for (const Constant &constant : constants) plan->constants.push_back(bits_of(plan->layout, constant));
    for (u32 i : short_columns)
        if (i >= columns.size()) throw std::invalid_argument("a short column's index is out of range");
    plan->short_columns = std::move(short_columns);
    plan->names.build(names, numbers);
    plan->tree.finish();
    plan->columns = std::move(columns);
    return plan;
}

}  // namespace st
