#include "state/rule.h"

#include <cstring>

#include "base/fail.h"

namespace st {

namespace {

void zero_rows(const StateBlock &block, const std::vector<u64> &rows, u64 workers, u8 *mean) {
    const u64 bytes = block.row_elements() * bytes_of(block.dtype);
    for (u32 worker = 0; worker < (block.rule->per_worker ? workers : 1); ++worker)
        for (u64 row : rows)
            if (row < block.rows()) std::memset(mean + block.in_mean(worker) + row * bytes, 0, bytes);
}

}  // namespace

const Rule &rule_named(const std::string &name) {
    std::string known;
    for (const Rule &rule : state_rules()) {
        if (name == rule.name) return rule;
        known += (known.empty() ? "" : ", ") + std::string(rule.name);
    }
    mistake("a state block's rule", "one of " + known, name);
}

void begin_round(const StateLayout &layout, const RoundStart &start, const WorkerMemory &own) {
    for (const StateBlock &block : layout.blocks) block.rule->begin(block, start, own);
}

void share_round(const StateLayout &layout, const RoundStart &start, const WorkerMemory &own, i64 steps) {
    for (const StateBlock &block : layout.blocks) block.rule->share(block, start, own, steps);
}

void check_joins(const StateLayout &layout) {
    if (layout.local_bytes > 0)
        mistake("a state that is joined", "that all of it is averaged", "blocks kept per worker");
}

f64 join_round(const StateLayout &layout, const RoundStart &start, std::vector<Contribution> each, u8 *joined) {
    Contributions all{std::move(each)};
    for (const Contribution &one : all.each) all.weight_sum += one.weight_sum;
    for (const StateBlock &block : layout.blocks) block.rule->join(block, start, all, joined);
    return all.weight_sum;
}

void fold_round(const StateLayout &layout, const RoundStart &start, std::vector<Contribution> each, u8 *mean) {
    const u64 count = each.size();
    const f64 weight_sum = join_round(layout, start, std::move(each), mean);
    for (const StateBlock &block : layout.blocks) block.rule->fold(block, start, mean);
    for (const StateBlock &block : layout.blocks)
        if (block.rule->settle) block.rule->settle(layout, block, start, weight_sum, mean);
    std::vector<u64> rows;
    for (const StateBlock &block : layout.blocks) {
        if (!block.rule->vacated) continue;
        rows.clear();
        block.rule->vacated(block, start, mean, rows);
        for (const StateBlock &its : layout.blocks)
            if (its.rows_of == block.name) zero_rows(its, rows, count, mean);
    }
}

}  // namespace st
