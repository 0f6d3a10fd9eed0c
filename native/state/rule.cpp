#include "state/rule.h"

#include "base/fail.h"

namespace st {

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

void fold_round(const StateLayout &layout, const RoundStart &start, std::vector<Contribution> workers, u8 *mean) {
    Contributions all{std::move(workers)};
    for (const Contribution &worker : all.workers) all.weight_sum += worker.weight_sum;
    for (const StateBlock &block : layout.blocks) block.rule->fold(block, start, all, mean);
}

}  // namespace st
