// The keys and indexes by which rows are nested, from a row's object down to the cells of columns. Most rows are flat:
// then there is the root alone.
#pragma once
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "decode/key_table.h"

namespace st {

// A key of an object, or an index of an array.
struct PathStep {
    std::string key;
    i64 index = -1;   // below 0: a key

    bool is_index() const { return index >= 0; }
};

using Path = std::vector<PathStep>;

// What a key leads to is a column, NO_COLUMN, or a node of the tree, told apart by one number. No key leads to the
// root, node 0: its number is free.
constexpr i32 ROOT = -2;
inline i32 target_of(u32 node) { return ROOT - static_cast<i32>(node); }
inline u32 node_of(i32 target) { return static_cast<u32>(ROOT - target); }

class KeyTree {
  public:
    struct Entry {
        PathStep step;
        i32 target;
        i32 named = NO_COLUMN;  // at the root: the column of that name, wherever its cells stand
        u32 run = 1;            // of an array: how many entries from here on lead side by side to columns side by side
    };
    struct Node {
        std::vector<Entry> entries;   // of an object in the order they were added, of an array in ascending order
        KeyTable keys;                // of an object's entries
        std::vector<u32> columns;     // all below it
        bool is_array = false;
    };

    // `path` may be empty: then the column stands at its name. Throws std::invalid_argument where a path runs through
    // another column's cells, or takes the same value for an object and an array (Python has said so to the user).
    void add(u32 column, const std::string &name, const Path &path);
    // After the last column.
    void finish();

    bool is_nested() const { return is_nested_; }   // some column has a path
    const Node &node(u32 node) const { return nodes_[node]; }
    u32 size() const { return static_cast<u32>(nodes_.size()); }
    // The column whose name is the root's key that leads to `target`.
    i32 named(i32 target) const;

  private:
    Entry &entry(u32 node, const PathStep &step, const std::string &name);

    std::vector<Node> nodes_{1};
    bool is_nested_ = false;
    std::vector<std::pair<std::string, u32>> apart_;   // columns that stand elsewhere, by name
    std::map<std::tuple<u32, i64, std::string>, u64> known_;   // entries by node and step, until finish()
};

}  // namespace st
