// A Python object as the list that a cell holds: lists, tuples, arrays, whatever else counts its elements; dicts.
#pragma once
#include "bindings/python_cell.h"

namespace st {

inline bool is_python_list(PyObject *value) {
    if (PyList_Check(value) || PyTuple_Check(value)) return true;
    if (!PySequence_Check(value) || PyUnicode_Check(value) || PyBytes_Check(value) || PyDict_Check(value)) return false;
    if (PySequence_Size(value) >= 0) return true;
    PyErr_Clear();   // an array without a dimension has no size
    return false;
}

// Calls take(item) for each element.
template <class Take>
void each_item(PyObject *value, Take take) {
    const nb::object items = nb::steal(PySequence_Fast(value, "expected a list"));
    if (!items.is_valid()) throw nb::python_error();
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i) {
        const nb::object item = nb::borrow(PySequence_Fast_GET_ITEM(items.ptr(), i));   // what runs could drop it
        take(item.ptr());
    }
}

// Calls take(key, value) for each entry of a dict.
template <class Take>
void each_entry(PyObject *dict, Take take) {
    const nb::object entries = nb::steal(PyDict_Items(dict));
    if (!entries.is_valid()) throw nb::python_error();
    each_item(entries.ptr(), [&take](PyObject *entry) {
        take(PyTuple_GET_ITEM(entry, 0), PyTuple_GET_ITEM(entry, 1));
    });
}

}  // namespace st
