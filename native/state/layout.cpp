#include <algorithm>
#include <cstring>
#include <set>

#include "base/fail.h"
#include "state/rule.h"

namespace st {

namespace {

Dtype stored_as(const StateBlockSpec &spec, const Rule &rule) {
    if (spec.dtype.empty()) return *rule.dtypes.begin();
    std::string known;
    for (Dtype dtype : rule.dtypes) {
        if (spec.dtype == name_of(dtype)) return dtype;
        known += (known.empty() ? "" : ", ") + std::string(name_of(dtype));
    }
    mistake("state block " + spec.name + ": dtype, by the rule " + spec.rule, "one of " + known, spec.dtype);
}

// Each of `rule`'s part behind the other from `at` on; where the last one ends.
u64 place(const std::vector<StateBlockSpec> &specs, Part part, u64 first, std::vector<StateBlock> &blocks) {
    u64 at = first;
    for (const StateBlockSpec &spec : specs) {
        const Rule &rule = rule_named(spec.rule);
        if (rule.part != part) continue;
        StateBlock block{spec.name, spec.group, &rule, stored_as(spec, rule), spec.shape, at, at - first, at, 0,
                         spec.rows_of};
        at += align64(block.bytes());
        blocks.push_back(std::move(block));
    }
    return at;
}

std::vector<StateBlock> published_of(const StateBlock &block, u32 workers) {
    std::vector<StateBlock> published;
    block.rule->write(block, workers, published);
    return published;
}

}  // namespace

StateLayout StateLayout::make(const std::vector<StateBlockSpec> &specs) {
    std::set<std::string> names;
    for (const StateBlockSpec &spec : specs)
        if (!names.insert(spec.name).second) mistake("state block " + spec.name, "a name of its own", "it twice");
    StateLayout layout;
    layout.learned_bytes = place(specs, Part::learned, 0, layout.blocks);
    layout.state_bytes = place(specs, Part::statistics, layout.learned_bytes, layout.blocks);
    for (StateBlock &block : layout.blocks) {
        if (!block.rule->per_worker) continue;
        block.mean_offset = layout.state_bytes + layout.local_bytes;
        layout.local_bytes += align64(block.bytes());
    }
    const auto begun = std::ranges::find(layout.blocks, &rule_named("window"), &StateBlock::rule);
    layout.windows_offset = begun == layout.blocks.end() ? layout.state_bytes : begun->offset;
    for (StateBlock &block : layout.blocks)
        if (block.rule->per_worker) block.worker_stride = layout.local_bytes;
    return layout;
}

const StateBlock *StateLayout::find(const std::string &name) const {
    for (const StateBlock &block : blocks)
        if (block.name == name) return &block;
    return nullptr;
}

PublishedLayout StateLayout::published(u32 workers) const {
    PublishedLayout published{{}, mean_bytes(workers)};
    for (const StateBlock &block : blocks)
        for (StateBlock &each : published_of(block, workers)) published.blocks.push_back(std::move(each));
    std::stable_sort(published.blocks.begin(), published.blocks.end(),
                     [](const StateBlock &a, const StateBlock &b) { return a.offset < b.offset; });
    return published;
}

void StateLayout::begin_lineage(const u8 *state, u32 workers, u8 *mean) const {
    for (const StateBlock &block : blocks)
        for (const StateBlock &each : published_of(block, workers))
            std::memcpy(mean + each.offset, state + block.offset, block.bytes());
}

}  // namespace st
