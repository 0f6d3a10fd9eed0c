// The keys of nested Python rows as Python objects: what a dict or a list holds of the columns below it.
#pragma once
#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "decode/key_tree.h"

namespace st {
namespace nb = nanobind;

class PythonTree {
  public:
    explicit PythonTree(const KeyTree &tree) : nodes_(tree.size()) {
        for (u32 node = 0; node < tree.size(); ++node) {
            nodes_[node].is_array = tree.node(node).is_array;
            for (const KeyTree::Entry &each : tree.node(node).entries) {
                if (each.target < 0 && tree.node(node_of(each.target)).columns.empty()) continue;
                nodes_[node].entries.push_back({key_of(each.step.key), each.step.index, each.target});
            }
        }
    }

    // Calls take(column, value) for each column of which a dict, a list or the like holds a value at its path.
    template <class Take>
    void each(PyObject *value, u32 node, Take &&take) const {
        const nb::object held = nb::borrow(value);   // what `take` runs could drop the last reference
        const Node &of = nodes_[node];
        for (const Entry &entry : of.entries) {
            if (of.is_array) {
                const nb::object item = element(value, entry.index);
                if (item.is_valid()) step(item.ptr(), entry.target, take);
            } else if (PyDict_Check(value)) {
                if (PyObject *item = PyDict_GetItemWithError(value, entry.key.ptr())) step(item, entry.target, take);
                else if (PyErr_Occurred()) PyErr_Clear();
            }
        }
    }

  private:
    struct Entry {
        nb::object key;
        i64 index;
        i32 target;
    };
    struct Node {
        std::vector<Entry> entries;
        bool is_array = false;
    };

    template <class Take>
    void step(PyObject *value, i32 target, Take &take) const {
        if (target >= 0) take(static_cast<u32>(target), value);
        else each(value, node_of(target), take);
    }

    // Of a list, or whatever else counts its elements but text; invalid where there is none.
    static nb::object element(PyObject *value, i64 index) {
        if (!PySequence_Check(value) || PyUnicode_Check(value) || PyBytes_Check(value)) return {};
        nb::object item = nb::steal(PySequence_GetItem(value, index));
        if (!item.is_valid()) PyErr_Clear();
        return item;
    }

    static nb::object key_of(const std::string &text) {
        PyObject *key = PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
        if (!key) throw nb::python_error();
        PyUnicode_InternInPlace(&key);
        return nb::steal(key);
    }

    std::vector<Node> nodes_;
};

}  // namespace st
