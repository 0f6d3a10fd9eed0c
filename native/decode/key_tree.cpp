#include "decode/key_tree.h"

#include <algorithm>
#include <stdexcept>

namespace st {

KeyTree::Entry &KeyTree::entry(u32 node, const PathStep &step, const std::string &name) {
    Node &of = nodes_[node];
    if (!of.entries.empty() && of.is_array != step.is_index())
        throw std::invalid_argument(name + ": its path has an object where another's has an array");
    of.is_array = step.is_index();
    const auto [found, fresh] = known_.try_emplace({node, step.index, step.key}, of.entries.size());
    if (fresh) of.entries.push_back({step, NO_COLUMN});
    return of.entries[found->second];
}

void KeyTree::add(u32 column, const std::string &name, const Path &path) {
    if (!path.empty()) {
        is_nested_ = true;
        apart_.emplace_back(name, column);
    }
    u32 at = 0;
    const Path own = path.empty() ? Path{{name}} : path;
    for (u64 i = 0; i < own.size(); ++i) {
        nodes_[at].columns.push_back(column);
        const i32 before = entry(at, own[i], name).target;
        const bool last = i + 1 == own.size();
        if (before != NO_COLUMN && (last || before >= 0))
            throw std::invalid_argument(name + ": its cells stand where another column's do");
        if (before != NO_COLUMN) {
            at = node_of(before);
            continue;
        }
        const u32 next = static_cast<u32>(nodes_.size());
        if (!last) nodes_.emplace_back();
        Entry &added = entry(at, own[i], name);
        added.target = last ? static_cast<i32>(column) : target_of(next);
        if (path.empty()) added.named = added.target;
        at = next;
    }
}

void KeyTree::finish() {
    for (const auto &[name, column] : apart_) {   // a node without keys holds nothing
        Entry &found = entry(0, {name}, name);
        found.named = static_cast<i32>(column);
        if (found.target != NO_COLUMN) continue;
        found.target = target_of(static_cast<u32>(nodes_.size()));
        nodes_.emplace_back();
    }
    for (Node &node : nodes_) {
        if (node.is_array) {
            std::ranges::sort(node.entries, {}, [](const Entry &each) { return each.step.index; });
            for (u64 i = node.entries.size() - 1; i-- > 0;) {
                const Entry &next = node.entries[i + 1];
                Entry &own = node.entries[i];
                const bool follows = own.step.index + 1 == next.step.index && own.target + 1 == next.target;
                if (follows && own.target >= 0) own.run = next.run + 1;
            }
            continue;
        }
        std::vector<std::string> keys;
        std::vector<i32> targets;
        for (const Entry &each : node.entries) keys.push_back(each.step.key), targets.push_back(each.target);
        node.keys.build(keys, targets);
    }
    apart_.clear();
    known_.clear();
}

i32 KeyTree::named(i32 target) const {
    for (const Entry &each : nodes_[0].entries)
        if (each.target == target) return each.named;
    return NO_COLUMN;
}

}  // namespace st
