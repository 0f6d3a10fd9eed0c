// Python rows (a dict, a list in column order, or a list of them) → slot rows, without a wire between; the same checks
// and hashing as the decoders.
#pragma once
#include <nanobind/nanobind.h>

#include <vector>

#include "bindings/python_list.h"
#include "bindings/python_tree.h"
#include "decode/row_writer.h"
#include "decode/utf8.h"

namespace st {

// A cell into its column of the row being written.
struct RowCell {
    RowWriter &writer;
    u32 column;

    void put(PyObject *value) {
        if (writer.form(column) == CellForm::value || !read_list(value)) read_cell(value, *this);
    }

    void missing() { writer.missing(column); }
    void boolean(bool value) { writer.boolean(column, value); }
    void integer(u64 magnitude, bool negative) { writer.integer(column, magnitude, negative); }
    void long_integer(f64 rounded, std::string_view digits) { writer.long_integer(column, rounded, digits); }
    void number(f64 value) { writer.number(column, value); }
    void text(std::string_view text) { writer.text(column, text); }
    void bytes(std::string_view raw) {   // or text, where the column takes that
        const PlanColumn &plan = writer.plan().columns[column];
        if (plan.kind && plan.kind->takes_bytes()) writer.bytes(column, raw);
        else if (plan.kind && plan.kind->takes_text() && is_utf8(raw)) writer.text(column, raw);
        else writer.wrong(column, "bytes");
    }
    void surrogate() { writer.wrong(column, "text with half a surrogate pair"); }
    void other(PyObject *value) {
        writer.wrong(column, PyLong_Check(value) ? "an integer of more than 1024 bits" : type_name(value));
    }

  private:
    // A list, or what else counts its elements; of pairs a dict as well. False: something else.
    bool read_list(PyObject *value) {
        const bool pairs = writer.form(column) == CellForm::pairs;
        const bool is_map = pairs && PyDict_Check(value);
        if (!is_map && !is_python_list(value)) return false;
        writer.open_list(column);
        if (is_map) {
            each_entry(value, [this](PyObject *key, PyObject *item) {
                writer.next_element();
                part(key), part(item);
                writer.end_pair(column);
            });
        } else {
            each_item(value, [this, pairs](PyObject *item) {
                writer.next_element();
                if (!pairs || !is_python_list(item)) return read_cell(item, *this);
                each_item(item, [this](PyObject *each) { part(each); });
                writer.end_pair(column);
            });
        }
        writer.close_list(column);
        return true;
    }

    void part(PyObject *value) {
        writer.next_part();
        read_cell(value, *this);
    }
};

// What a program's rows are: a dict or a list of values; many of them; columns, which stand at their names.
enum class PythonForm { row, rows, columns };

// Where the cell of `column` stands in Python rows, or the row (NO_COLUMN): as DeadRows::path.
inline std::string python_path(const DecodePlan &plan, i32 column, i64 index, PythonForm form) {
    const std::string path = form == PythonForm::row ? "$" : "$[" + std::to_string(index) + "]";
    if (column == NO_COLUMN) return path;
    if (plan.columns[column].is_made) return path + " (transforms." + plan.columns[column].name + ")";
    return path + (form == PythonForm::columns ? "." + plan.columns[column].name : plan.columns[column].place);
}

// The row is read: counts it, with path and reason where it cannot be used. False: the batch has no room for it.
inline bool finish_python_row(const DecodePlan &plan, RowWriter &writer, i64 index, PythonForm form, RowSink &sink,
                              RowTally &tally) {
    const RowEnd end = writer.finish();
    if (end == RowEnd::held) return false;
    if (end == RowEnd::trained) {
        ++sink.rows, ++tally.trained;
        sink.newest_event_time_ms = std::max(sink.newest_event_time_ms, writer.event_time_ms());
    } else if (end == RowEnd::filtered) {
        ++tally.filtered;
        tally.filtered_rows.push_back({index, index + 1, writer.failed_column()});
    } else {
        ++tally.dead;
        std::string path = python_path(plan, writer.failed_column(), index, form);
        tally.dead_rows.push_back({index, index + 1, std::move(path), writer.reason(), false});
    }
    return true;
}

class PythonRows final : public RowSource {
  public:
    explicit PythonRows(std::shared_ptr<const DecodePlan> plan)
        : plan_(plan), writer_(plan), tree_(tree_of(*plan)) {
        for (const PlanColumn &column : plan_->columns) given_ += !column.is_made;
    }

    const DecodePlan &plan() const { return *plan_; }

    // Rows of a dict, a list of values or a list of rows, from `first` on. The caller keeps it until they are passed.
    void begin(PyObject *rows, i64 first = 0) {
        rows_ = rows;
        next_ = first;
    }

    // On the GIL. Throws nb::type_error for what are no rows.
    bool next(RowSink &sink, RowTally &tally) override {
        if (PyDict_Check(rows_)) return one(rows_, 0, PythonForm::row, sink, tally);
        if (!PyList_Check(rows_) && !PyTuple_Check(rows_))
            throw nb::type_error("rows must be a dict, a list of values or a list of rows");
        const Py_ssize_t count = PySequence_Fast_GET_SIZE(rows_);
        if (count == 0) return true;
        if (!is_row(PySequence_Fast_GET_ITEM(rows_, 0))) return one(rows_, 0, PythonForm::row, sink, tally);
        for (; next_ < count && next_ < PySequence_Fast_GET_SIZE(rows_); ++next_)
            if (!one(PySequence_Fast_GET_ITEM(rows_, next_), next_, PythonForm::rows, sink, tally)) return false;
        return true;
    }

  private:
    // What would be around a record is a field of a program's rows.
    static KeyTree tree_of(const DecodePlan &plan) {
        KeyTree tree;
        for (u32 c = 0; c < plan.columns.size(); ++c)
            if (const PlanColumn &column = plan.columns[c]; column.kind && !column.is_made)
                tree.add(c, column.name, column.path);
        tree.finish();
        return tree;
    }

    static bool is_row(PyObject *value) { return PyDict_Check(value) || PyList_Check(value) || PyTuple_Check(value); }

    bool one(PyObject *row, i64 index, PythonForm form, RowSink &sink, RowTally &tally) {
        if (sink.rows == sink.row_capacity) return false;
        const nb::object held = nb::borrow(row);   // a cell's __float__ could take it out of its list
        writer_.start(sink.slot, sink.rows);
        if (PyDict_Check(row)) tree_.each(row, 0, [this](u32 column, PyObject *value) { cell(column, value); });
        else if (PyList_Check(row) || PyTuple_Check(row)) read_sequence(row);
        else writer_.fail(NO_COLUMN, std::string("expected a row (a dict or a list), got ") + Py_TYPE(row)->tp_name);
        if (writer_.is_empty()) writer_.refuse_empty(names_of(row));
        return finish_python_row(*plan_, writer_, index, form, sink, tally);
    }

    static NameList names_of(PyObject *row) {
        NameList names;
        PyObject *key, *value;
        Py_ssize_t at = 0, size;
        while (PyDict_Check(row) && PyDict_Next(row, &at, &key, &value)) {
            const char *text = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, &size) : nullptr;
            if (text) names.add({text, static_cast<u64>(size)});
            else PyErr_Clear();
        }
        return names;
    }

    void read_sequence(PyObject *row) {
        const u64 count = PySequence_Fast_GET_SIZE(row), full = given_;
        const std::vector<u32> &brief = plan_->short_columns;
        const bool is_brief = !brief.empty() && count == brief.size();
        if (count != full && !is_brief)
            return writer_.fail(NO_COLUMN,
                                "expected " + std::to_string(full) + " values, got " + std::to_string(count));
        for (u64 i = 0; i < count && i < static_cast<u64>(PySequence_Fast_GET_SIZE(row)); ++i) {
            const u32 column = is_brief ? brief[i] : static_cast<u32>(i);
            if (plan_->columns[column].kind) cell(column, PySequence_Fast_GET_ITEM(row, i));
        }
    }

    void cell(u32 column, PyObject *value) {
        RowCell to{writer_, column};
        if (PyFloat_CheckExact(value)) read_cell(value, to);
        else to.put(value);
    }

    std::shared_ptr<const DecodePlan> plan_;
    RowWriter writer_;
    PythonTree tree_;
    u64 given_ = 0;   // columns that a row may hold; others follow them
    PyObject *rows_ = nullptr;
    i64 next_ = 0;
};

}  // namespace st
