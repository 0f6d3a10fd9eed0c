// One Python object as a cell: what kind of value it is. Python's own objects are looked at in place: no copy, nothing
// evaluated but __index__ and __float__.
#pragma once
#include <nanobind/nanobind.h>

#include <cmath>
#include <string>
#include <string_view>

#include "base/types.h"

namespace st {
namespace nb = nanobind;

inline std::string_view type_name(PyObject *value) { return Py_TYPE(value)->tp_name; }

// pandas.NA and NaT, None's kin.
inline bool is_missing_mark(PyObject *value) {
    const std::string_view type = type_name(value);
    return type == "NAType" || type == "NaTType" || type.ends_with(".NAType") || type.ends_with(".NaTType");
}

// A time or a span of time: NumPy's have __float__ and __index__, which give a count of whatever unit they are in.
inline bool is_numpy_time(PyObject *value) {
    const std::string_view type = type_name(value);
    return type == "numpy.datetime64" || type == "numpy.timedelta64";
}

// Calls one of to.missing(), boolean(b), integer(magnitude, negative), long_integer(rounded, digits), number(f64),
// text(UTF-8), bytes(raw), other(value) and surrogate(); NaN is missing.
template <class To>
void read_number(f64 value, To &to) {
    if (std::isnan(value)) [[unlikely]] to.missing();
    else to.number(value);
}

template <class To>
void read_integer(PyObject *value, To &to) {
    int overflow = 0;
    const long long small = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (!overflow) return to.integer(small < 0 ? 0 - static_cast<u64>(small) : static_cast<u64>(small), small < 0);
    const f64 rounded = PyLong_AsDouble(value);
    if (rounded == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        return to.other(value);
    }
    const nb::object text = nb::steal(PyObject_Str(value));
    if (!text.is_valid()) throw nb::python_error();
    to.long_integer(rounded, PyUnicode_AsUTF8(text.ptr()));
}

// NumPy's scalars, Decimal and the like.
template <class To>
void read_other(PyObject *value, To &to) {
    const nb::object held = nb::borrow(value);   // what runs below could drop the last reference
    const std::string_view type = type_name(value);
    if (type == "numpy.bool" || type == "numpy.bool_") return to.boolean(PyObject_IsTrue(value) == 1);
    if (is_missing_mark(value)) return to.missing();
    if (is_numpy_time(value)) return to.other(value);
    if (PyIndex_Check(value)) {
        const nb::object whole = nb::steal(PyNumber_Index(value));
        if (whole.is_valid()) return read_integer(whole.ptr(), to);
        PyErr_Clear();
    }
    if (Py_TYPE(value)->tp_as_number && Py_TYPE(value)->tp_as_number->nb_float && !PyComplex_Check(value)) {
        const f64 number = PyFloat_AsDouble(value);
        if (number != -1.0 || !PyErr_Occurred()) return read_number(number, to);
        PyErr_Clear();
    }
    to.other(value);
}

template <class To>
void read_cell(PyObject *value, To &to) {
    if (PyFloat_Check(value)) return read_number(PyFloat_AS_DOUBLE(value), to);
    if (value == Py_None) return to.missing();
    if (PyBool_Check(value)) return to.boolean(value == Py_True);
    if (PyLong_Check(value)) return read_integer(value, to);
    if (PyUnicode_Check(value)) {
        Py_ssize_t size;
        const char *text = PyUnicode_AsUTF8AndSize(value, &size);
        if (text) return to.text({text, static_cast<u64>(size)});
        PyErr_Clear();
        return to.surrogate();
    }
    if (PyBytes_Check(value))
        return to.bytes({PyBytes_AS_STRING(value), static_cast<u64>(PyBytes_GET_SIZE(value))});
    read_other(value, to);
}

}  // namespace st
