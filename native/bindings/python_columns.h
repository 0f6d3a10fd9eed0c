// Columns as a Python program holds them: arrays of numbers, which native code may read without the GIL, and lists.
#pragma once
#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "bindings/python_rows.h"
#include "decode/column_view.h"

namespace st {

// One array of numbers, a row of which is one or as many, or a list; held while the object lives.
class PythonColumn {
  public:
    PythonColumn(PyObject *values, const std::string &name) {
        if (PyList_Check(values)) {
            list_ = nb::borrow(values);
            rows_ = static_cast<u64>(PyList_GET_SIZE(values));
            return;
        }
        buffer_.reset(new Py_buffer{});
        if (PyObject_GetBuffer(values, buffer_.get(), PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
            buffer_->obj = nullptr;
            throw nb::python_error();
        }
        if (buffer_->ndim < 1 || buffer_->ndim > 2 || !find_type(buffer_->format, static_cast<u64>(buffer_->itemsize)))
            throw nb::type_error((name + ": expected a list or a 1-dimensional array of numbers").c_str());
        view_.data = static_cast<const char *>(buffer_->buf);
        view_.stride = buffer_->strides[0];
        rows_ = static_cast<u64>(buffer_->shape[0]);
        if (buffer_->ndim == 1) return;
        is_matrix_ = true;
        view_.elements = static_cast<u32>(buffer_->shape[1]);
        view_.element_stride = buffer_->strides[1];
    }

    u64 rows() const { return rows_; }
    bool is_list() const { return list_.is_valid(); }
    bool is_matrix() const { return is_matrix_; }
    const ColumnView &view() const { return view_; }
    // Of a list; nullptr where something has cut it short meanwhile.
    PyObject *item(u64 row) const {
        return row < static_cast<u64>(PyList_GET_SIZE(list_.ptr())) ? PyList_GET_ITEM(list_.ptr(), row) : nullptr;
    }

  private:
    struct Release {
        void operator()(Py_buffer *buffer) const {
            if (buffer->obj) PyBuffer_Release(buffer);
            delete buffer;
        }
    };

    bool find_type(const char *format, u64 bytes) {
        const char kind = format && *format && !format[1] ? *format : 0;
        const std::string_view kinds(&kind, kind ? 1 : 0);
        const auto is = [&](std::string_view any) { return !kinds.empty() && any.find(kind) != any.npos; };
        if (is("f")) view_.type = CellType::f32;
        else if (is("d")) view_.type = CellType::f64;
        else if (is("?")) view_.type = CellType::boolean;
        else if (is("bhilq")) view_.type = of_size(bytes, CellType::i8);
        else if (is("BHILQ")) view_.type = of_size(bytes, CellType::u8);
        else return false;
        return true;
    }

    // i8 … i64 and u8 … u64 follow one another by size.
    static CellType of_size(u64 bytes, CellType first) {
        const u32 step = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
        return static_cast<CellType>(static_cast<u32>(first) + step);
    }

    nb::object list_;
    std::unique_ptr<Py_buffer, Release> buffer_;
    ColumnView view_;
    u64 rows_ = 0;
    bool is_matrix_ = false;
};

// Columns → slot rows, with the checks and reasons of PythonRows.
class PythonColumns final : public RowSource {
  public:
    // `given`: a dict of the plan's columns; those it does not name are missing. `writer` is of the plan.
    PythonColumns(const DecodePlan &plan, RowWriter &writer, nb::dict given) : plan_(plan), writer_(writer) {
        for (u32 c = 0; c < plan.columns.size(); ++c) {
            if (!plan.columns[c].kind || plan.columns[c].is_made) continue;
            PyObject *values = PyDict_GetItemString(given.ptr(), plan.columns[c].name.c_str());
            if (values) columns_.push_back({c, PythonColumn(values, plan.columns[c].name)});
        }
        for (const auto &[c, column] : columns_) {
            any_list_ |= column.is_list();
            if (column.is_matrix() && plan_.columns[c].kind->form() != CellForm::list)
                throw nb::type_error((plan_.columns[c].name + ": expected one value a row, got many").c_str());
            if (column.rows() != columns_.front().second.rows())
                throw std::invalid_argument("columns must be of one length");
        }
    }

    u64 rows() const { return columns_.empty() ? 0 : columns_.front().second.rows(); }
    bool needs_gil() const { return any_list_; }

    bool next(RowSink &sink, RowTally &tally) override {
        for (; next_ < rows(); ++next_) {
            if (sink.rows == sink.row_capacity) return false;
            writer_.start(sink.slot, sink.rows);
            for (const auto &[c, column] : columns_) {
                RowCell to{writer_, c};
                if (column.is_matrix()) {
                    read_matrix(column.view(), c);
                } else if (!column.is_list()) {
                    column.view().read(next_, to);
                } else if (PyObject *value = column.item(next_)) {
                    const nb::object held = nb::borrow(value);
                    to.put(value);
                }
            }
            const i64 index = static_cast<i64>(next_);
            if (!finish_python_row(plan_, writer_, index, PythonForm::columns, sink, tally)) return false;
        }
        return true;
    }

  private:
    // An element, announced.
    struct Element : RowCell {
        void missing() { writer.next_element(); }
        void boolean(bool value) { writer.next_element(), RowCell::boolean(value); }
        void integer(u64 magnitude, bool negative) { writer.next_element(), RowCell::integer(magnitude, negative); }
        void number(f64 value) { writer.next_element(), RowCell::number(value); }
    };

    void read_matrix(const ColumnView &view, u32 column) {
        Element to{{writer_, column}};
        writer_.open_list(column);
        view.each(next_, to);
        writer_.close_list(column);
    }

    const DecodePlan &plan_;
    RowWriter &writer_;
    std::vector<std::pair<u32, PythonColumn>> columns_;
    u64 next_ = 0;
    bool any_list_ = false;
};

}  // namespace st
