#include "train/first_moments.h"

#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "base/moments.h"
#include "state/rule.h"

namespace st {

namespace {

constexpr f64 MAD_OF_NORMAL = 1.4826;   // standard deviations of a normal distribution in its median distance

f64 median(std::vector<f64> &values) {   // the lower one of an even number; the order is lost
    auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// The median distance of `values` from `centre`.
f64 median_distance(const std::vector<f64> &values, f64 centre, std::vector<f64> &distances) {
    distances.clear();
    for (f64 value : values) distances.push_back(std::abs(value - centre));
    return median(distances);
}

// How far from the median a value may be.
f64 reach_of_first(const std::vector<f64> &values, f64 centre, f64 clip) {
    if (!(clip > 0)) return beyond_any;
    std::vector<f64> distances, others;
    f64 spread = median_distance(values, centre, distances);
    if (spread > 0) return clip * MAD_OF_NORMAL * spread;
    std::erase(distances, 0.0);
    if (distances.size() < 2) return 0;
    f64 typical = median(distances);
    return typical + clip * MAD_OF_NORMAL * median_distance(distances, typical, others);
}

void begin_column(ColumnMoments &column, const std::vector<f64> &values) {
    std::vector<f64> order = values;
    f64 centre = median(order), reach = reach_of_first(values, centre, column.clip), sum = 0;
    auto held = [&](f64 value) { return std::clamp(value, centre - reach, centre + reach); };
    for (f64 value : values) sum += held(value);
    column.count = static_cast<f64>(values.size());
    column.mean = sum / column.count;
    column.squares = 0;
    for (f64 value : values) {
        f64 distance = held(value) - column.mean;
        column.squares += distance * distance;
        if (held(value) == value) continue;
        column.outside += 1;
        column.least = nearer(std::abs(value - column.mean), column.least);
    }
}

// The slot's block whose columns a moments block describes, by the name behind the first point.
const Block &described(const SlotLayout &slot_layout, const std::string &name) {
    std::string wanted = name.substr(name.find('.') + 1);
    const Block *block = slot_layout.find(wanted.c_str());
    if (!block || (block->dtype != Dtype::f32 && block->dtype != Dtype::f64))
        mistake("moments " + name, "a block " + wanted + " of floats in a slot", "none");
    return *block;
}

// A column's values in the rows of a slot that count, behind those of other slots.
template <class T>
void add_values(const u8 *slot, const Block &block, const Block &weights, u32 column, std::vector<f64> &values) {
    const T *x = reinterpret_cast<const T *>(slot + block.offset) + column;
    const f32 *weight = reinterpret_cast<const f32 *>(slot + weights.offset);
    for (u32 r = 0; r < reinterpret_cast<const SlotHeader *>(slot)->rows; ++r)
        if (weight[r] > 0 && !std::isnan(x[u64{r} * block.width]))   // a label that is missing
            values.push_back(x[u64{r} * block.width]);
}

}  // namespace

void first_moments(const StateLayout &layout, const SlotLayout &slot_layout, const std::vector<const u8 *> &slots,
                   u8 *base) {
    const Rule &of_moments = rule_named("moments");
    const Block *weights = slot_layout.find("weight");
    for (const StateBlock &moments : layout.blocks) {
        if (moments.rule != &of_moments) continue;
        const Block &block = described(slot_layout, moments.name);
        ColumnMoments *columns = reinterpret_cast<ColumnMoments *>(base + moments.part_offset);
        std::vector<f64> values;   // of one column: what the pass needs does not grow with the columns
        for (u32 c = 0; c < block.width; ++c) {
            values.clear();
            for (const u8 *slot : slots)
                if (block.dtype == Dtype::f64) add_values<f64>(slot, block, *weights, c, values);
                else add_values<f32>(slot, block, *weights, c, values);
            if (!values.empty()) begin_column(columns[c], values);
        }
    }
}

}  // namespace st
