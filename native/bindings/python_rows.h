// Python rows (a dict, a list in column order, or a list of them) → slot rows, without a wire between; the same checks
// and hashing as the decoders. Python's own objects are looked at in place: no copy, nothing evaluated but __index__
// and __float__.
#pragma once
#include <nanobind/nanobind.h>

#include <vector>

#include "vectorize/row_writer.h"

namespace st {
namespace nb = nanobind;

class PythonRows {
  public:
    explicit PythonRows(std::shared_ptr<const DecodePlan> plan) : plan_(plan), writer_(plan) {
        for (u32 c = 0; c < plan_->columns.size(); ++c) {
            const PlanColumn &column = plan_->columns[c];
            if (column.target == Target::ignored) continue;
            PyObject *name =
                PyUnicode_FromStringAndSize(column.name.data(), static_cast<Py_ssize_t>(column.name.size()));
            if (!name) throw nb::python_error();
            PyUnicode_InternInPlace(&name);
            keys_.push_back({c, nb::steal(name)});
        }
    }

    const DecodePlan &plan() const { return *plan_; }

    // Rows from `first` on. False: the slot is full before the last one.
    bool fill(PyObject *rows, i64 first, RowSink &sink, RowTally &tally) {
        if (PyDict_Check(rows)) return one(rows, 0, false, sink, tally);
        if (!PyList_Check(rows) && !PyTuple_Check(rows))
            throw nb::type_error("rows must be a dict, a list of values or a list of rows");
        const Py_ssize_t count = PySequence_Fast_GET_SIZE(rows);
        if (count == 0) return true;
        if (!is_row(PySequence_Fast_GET_ITEM(rows, 0))) return one(rows, 0, false, sink, tally);
        for (Py_ssize_t i = first; i < count && i < PySequence_Fast_GET_SIZE(rows); ++i)
            if (!one(PySequence_Fast_GET_ITEM(rows, i), i, true, sink, tally)) return false;
        return true;
    }

  private:
    struct Key {
        u32 column;
        nb::object name;
    };

    static bool is_row(PyObject *value) { return PyDict_Check(value) || PyList_Check(value) || PyTuple_Check(value); }

    bool one(PyObject *row, i64 index, bool many, RowSink &sink, RowTally &tally) {
        if (sink.rows == sink.row_capacity) return false;
        const nb::object held = nb::borrow(row);   // a cell's __float__ could take it out of its list
        writer_.start(sink.slot, sink.rows);
        if (PyDict_Check(row)) read_dict(row);
        else if (PyList_Check(row) || PyTuple_Check(row)) read_sequence(row);
        else writer_.fail(NO_COLUMN, std::string("expected a row (a dict or a list), got ") + Py_TYPE(row)->tp_name);
        const RowEnd end = writer_.finish();
        if (end == RowEnd::trained) {
            ++sink.rows, ++tally.trained;
            sink.newest_event_time_ms = std::max(sink.newest_event_time_ms, writer_.event_time_ms());
        } else if (end == RowEnd::filtered) {
            ++tally.filtered;
            tally.filtered_rows.push_back({index, index + 1, writer_.failed_column()});
        } else {
            ++tally.dead;
            std::string path = many ? "$[" + std::to_string(index) + "]" : "$";
            if (writer_.failed_column() != NO_COLUMN) path += "." + plan_->columns[writer_.failed_column()].name;
            tally.dead_rows.push_back({index, index + 1, path, writer_.reason(), false});
        }
        return true;
    }

    void read_dict(PyObject *row) {
        for (const Key &key : keys_) {
            PyObject *value = PyDict_GetItemWithError(row, key.name.ptr());
            if (value) read_cell(key.column, value);
            else if (PyErr_Occurred()) PyErr_Clear();
        }
    }

    void read_sequence(PyObject *row) {
        const u64 count = PySequence_Fast_GET_SIZE(row), full = plan_->columns.size();
        const std::vector<u32> &brief = plan_->short_columns;
        const bool is_brief = !brief.empty() && count == brief.size();
        if (count != full && !is_brief)
            return writer_.fail(NO_COLUMN,
                                "expected " + std::to_string(full) + " values, got " + std::to_string(count));
        for (u64 i = 0; i < count && i < static_cast<u64>(PySequence_Fast_GET_SIZE(row)); ++i) {
            const u32 column = is_brief ? brief[i] : static_cast<u32>(i);
            if (plan_->columns[column].target != Target::ignored) read_cell(column, PySequence_Fast_GET_ITEM(row, i));
        }
    }

    void read_cell(u32 column, PyObject *value) {
        if (PyFloat_Check(value)) return writer_.number(column, PyFloat_AS_DOUBLE(value));
        if (value == Py_None) return writer_.missing(column);
        if (PyBool_Check(value)) return writer_.boolean(column, value == Py_True);
        if (PyLong_Check(value)) return read_integer(column, value);
        if (PyUnicode_Check(value)) {
            Py_ssize_t size;
            const char *text = PyUnicode_AsUTF8AndSize(value, &size);
            if (text) return writer_.text(column, {text, static_cast<u64>(size)});
            PyErr_Clear();
            return writer_.wrong(column, "text with half a surrogate pair");
        }
        read_other(column, value);
    }

    void read_integer(u32 column, PyObject *value) {
        int overflow = 0;
        const long long small = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (!overflow)
            return writer_.integer(column, small < 0 ? 0 - static_cast<u64>(small) : static_cast<u64>(small),
                                   small < 0);
        const f64 rounded = PyLong_AsDouble(value);
        if (rounded == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            return writer_.wrong(column, "an integer of more than 1024 bits");
        }
        const nb::object text = nb::steal(PyObject_Str(value));
        if (!text.is_valid()) throw nb::python_error();
        writer_.long_integer(column, rounded, PyUnicode_AsUTF8(text.ptr()));
    }

    // NumPy's scalars and the like.
    void read_other(u32 column, PyObject *value) {
        const nb::object held = nb::borrow(value);
        const std::string type = Py_TYPE(value)->tp_name;
        if (type == "numpy.bool" || type == "numpy.bool_") return writer_.boolean(column, PyObject_IsTrue(value) == 1);
        if (PyIndex_Check(value)) {
            const nb::object whole = nb::steal(PyNumber_Index(value));
            if (whole.is_valid()) return read_integer(column, whole.ptr());
            PyErr_Clear();
        }
        if (Py_TYPE(value)->tp_as_number && Py_TYPE(value)->tp_as_number->nb_float && !PyComplex_Check(value)) {
            const f64 number = PyFloat_AsDouble(value);
            if (number != -1.0 || !PyErr_Occurred()) return writer_.number(column, number);
            PyErr_Clear();
        }
        writer_.wrong(column, type);
    }

    std::shared_ptr<const DecodePlan> plan_;
    RowWriter writer_;
    std::vector<Key> keys_;
};

}  // namespace st
