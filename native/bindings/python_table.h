// Python rows or columns → a RowTable: cells as native values, so that a record can be encoded without the GIL.
#pragma once
#include <algorithm>
#include <optional>
#include <vector>

#include "bindings/python_columns.h"
#include "bindings/python_tree.h"
#include "decode/row_table.h"
#include "decode/utf8.h"

namespace st {

// Reads every form. Keys are expected in the order of the row before: a match costs one comparison of pointers.
class PythonTable {
  public:
    // `convert(value, column)` gives a plain value for one of another type, or raises. With `others` plain fields that
    // the job does not name go along. With `matrices` arrays of as many numbers a row stay views.
    PythonTable(std::vector<PlanColumn> columns, nb::callable convert, bool others, bool matrices)
        : convert_(std::move(convert)), others_(others), matrices_(matrices) {
        for (PlanColumn &column : columns) {
            if (column.from.empty()) table.tree.add(static_cast<u32>(table.columns.size()), column.name, column.path);
            table.columns.push_back({std::move(column), true, false, false, {}});
        }
        table.tree.finish();
        tree_.emplace(table.tree);
        named_ = static_cast<u32>(table.columns.size());
        name_columns();
    }

    RowTable table;

    // A dict, if it is one row. False: it may be columns, which streamtrain/columns/forms.py tells.
    bool read_row(PyObject *row) {
        start(1);
        try {
            return read_dict(row, 0, true);
        } catch (const CellMistake &) {
            if (undecided_) return false;
            throw;
        }
    }

    // `rows`: a list of dicts.
    void read_rows(PyObject *rows) {
        start(static_cast<u64>(PyList_GET_SIZE(rows)));
        for (u64 r = 0; r < table.rows && r < static_cast<u64>(PyList_GET_SIZE(rows)); ++r) {
            const nb::object row = nb::borrow(PyList_GET_ITEM(rows, r));
            if (!PyDict_Check(row.ptr())) throw nb::type_error("rows must be dicts");
            read_dict(row.ptr(), r, false);
        }
        show_count();
    }

    // `given`: lists and 1-dimensional arrays of numbers, `rows` long, by name. Held until clear().
    void read_columns(nb::dict given, u64 rows) {
        start(rows);
        for (auto [name, values] : given) {
            const u32 c = find(name.ptr(), names_);
            if (c >= NODES) continue;
            held_.emplace_back(values.ptr(), nb::cast<std::string>(name));
            const PythonColumn &column = held_.back();
            if (column.rows() != rows) throw std::invalid_argument("columns must be of one length");
            table.columns[c].given = c < named_ || !column.is_list();
            if (!column.is_list()) {
                table.columns[c].view = column.view();
                table.columns[c].is_view = !column.is_matrix() || matrices_;
                if (!table.columns[c].is_view)
                    for (u64 r = 0; r < rows; ++r) Put{*this, c, r}.matrix_row(column.view());
                continue;
            }
            for (u64 r = 0; r < rows; ++r) {
                const nb::object value = nb::borrow(column.item(r));
                if (!value.is_valid()) throw std::invalid_argument("a column was cut short while it was read");
                put(value.ptr(), c, r);
            }
        }
        show_count();
    }

    // Lets go of the arrays.
    void clear() {
        held_.clear();
        table.rows = 0;
        for (RowTable::Column &column : table.columns) column.given = column.is_view = false;
    }

    // An empty table of so many rows, whose cells are missing.
    void start(u64 rows) {
        clear();
        if (table.columns.size() > named_ + LEAST_OTHERS) forget_others();
        table.rows = rows;
        table.letters.clear();
        table.elements.clear();
        table.cells.assign(rows * table.columns.size(), Cell{});
    }

    // Rows without any of the columns that a decoder looks at are rows all the same: one of these says how many.
    void show_count() {
        const auto used = [](const RowTable::Column &column) {
            return column.named && column.plan.kind && column.plan.from.empty();
        };
        const auto shows = [&](const RowTable::Column &column) { return used(column) && column.given; };
        if (table.rows < 2 || std::any_of(table.columns.begin(), table.columns.end(), shows)) return;
        const auto first = std::find_if(table.columns.begin(), table.columns.end(), used);
        if (first != table.columns.end()) first->given = true;
    }

  private:
    // A key leads to a column, to a node of the tree (its number above NODES), or NOWHERE.
    static constexpr u32 NODES = u32{1} << 31, NOWHERE = ~u32{0};
    // Other fields' names that are remembered from call to call, and as many new ones a call may bring: names that rows
    // give by the thousand are data.
    static constexpr u32 LEAST_OTHERS = 64, MOST_OTHERS = 2 * LEAST_OTHERS;

    void forget_others() {
        table.columns.resize(named_);
        order_.clear();
        name_columns();
    }

    // What the keys of rows and of columns lead to; columns from around a record are not in it. A column's name that is
    // no key of rows, and such a key that is no column's name, are not other fields either: those would stand beside
    // the column in a record.
    void name_columns() {
        ++table.naming;
        names_ = nb::dict();
        for (u32 c = 0; c < named_; ++c) {
            const PlanColumn &column = table.columns[c].plan;
            names_[nb::str(column.name.c_str())] = column.from.empty() ? c : NOWHERE;
        }
        keys_ = names_;
        if (!table.tree.is_nested()) return;
        keys_ = nb::dict();
        for (u32 c = 0; c < named_; ++c) keys_[nb::str(table.columns[c].plan.name.c_str())] = NOWHERE;
        for (const KeyTree::Entry &each : table.tree.node(0).entries) {
            const nb::str key(each.step.key.data(), each.step.key.size());
            const u32 to = static_cast<u32>(each.target);
            keys_[key] = each.target < 0 ? NODES + node_of(each.target) : to;
            if (!names_.contains(key)) names_[key] = NOWHERE;
        }
    }

    // `alone`: false where this may be columns.
    bool read_dict(PyObject *row, u64 r, bool alone) {
        PyObject *key, *value;
        Py_ssize_t at = 0;
        u64 place = 0;
        undecided_ = alone;
        while (PyDict_Next(row, &at, &key, &value)) {
            const u32 c = place < order_.size() && order_[place].key.ptr() == key ? order_[place].column
                                                                                 : learn(place, key);
            ++place;
            if (c >= NODES) [[unlikely]] {
                if (c == NOWHERE) continue;
                const u32 node = c - NODES;
                if (undecided_) {
                    const i32 named = table.tree.named(target_of(node));
                    const bool is_list = named >= 0 && takes_list(static_cast<u32>(named));
                    if (named >= 0 && !is_list && PySequence_Check(value) && !is_scalar(value)) return false;
                    undecided_ = is_list && table.tree.node(node).columns.empty();
                }
                tree_->each(value, node, [this, r](u32 column, PyObject *cell) { put(cell, column, r); });
                continue;
            }
            if (undecided_ && c < named_ && !takes_list(c)) {   // lists are no columns' sign
                if (!is_scalar(value)) return false;
                undecided_ = false;
            }
            if (PyFloat_CheckExact(value) && std::isfinite(PyFloat_AS_DOUBLE(value))) {
                table.columns[c].given = true;
                Cell &cell = table.cell(c, r);
                cell.kind = CellKind::number;
                cell.number = PyFloat_AS_DOUBLE(value);
            } else {
                put(value, c, r);
            }
        }
        return true;
    }

    bool takes_list(u32 c) const {
        const Kind *kind = table.columns[c].plan.kind.get();
        return kind && kind->form() != CellForm::value;
    }

    static bool is_scalar(PyObject *value) {
        return PyFloat_Check(value) || value == Py_None || PyLong_Check(value) || PyUnicode_Check(value) ||
               PyBytes_Check(value);
    }

    u32 learn(u64 place, PyObject *key) {
        const u32 c = find(key, keys_);
        if (place < order_.size()) order_[place] = {nb::borrow(key), c};
        else if (place == order_.size() && place < MOST_OTHERS + named_) order_.push_back({nb::borrow(key), c});
        return c;
    }

    // What a key leads to: a new column where it may go along.
    u32 find(PyObject *key, const nb::dict &by) {
        PyObject *known = PyDict_GetItemWithError(by.ptr(), key);
        if (known) return static_cast<u32>(PyLong_AsUnsignedLong(known));
        if (PyErr_Occurred()) throw nb::python_error();
        if (!others_ || !PyUnicode_Check(key) || table.columns.size() >= named_ + MOST_OTHERS) return NOWHERE;
        Py_ssize_t size;
        const char *name = PyUnicode_AsUTF8AndSize(key, &size);
        if (!name) return PyErr_Clear(), NOWHERE;
        const u32 c = static_cast<u32>(table.columns.size());
        RowTable::Column other{{}, false, false, false, {}};
        other.plan.name.assign(name, static_cast<u64>(size));
        table.columns.push_back(std::move(other));
        ++table.naming;
        table.cells.resize(table.rows * table.columns.size());
        names_[nb::handle(key)] = c;
        keys_[nb::handle(key)] = c;
        return c;
    }

    // A value as a cell of the table.
    struct Put {
        PythonTable &self;
        u32 column;
        u64 row;
        i64 element = -1;   // of a list, among the table's
        bool converted = false;

        Cell &cell(CellKind kind) {
            Cell &found = element < 0 ? self.table.cell(column, row) : self.table.elements[static_cast<u64>(element)];
            found.kind = kind;
            return found;
        }
        // The elements side by side; of a dict, and of a pair, a list each.
        void list(PyObject *value, bool pairs) {
            const u64 count = static_cast<u64>(PyObject_Size(value)), at = self.table.elements.size();
            Cell &to = cell(CellKind::list);
            to.size = static_cast<u32>(count);
            to.letters_at = at;
            self.table.elements.resize(at + count);
            i64 next = static_cast<i64>(at);
            const auto put = [&](PyObject *item, bool is_pair) {
                if (next == static_cast<i64>(at + count)) return;
                Put inner{self, column, row, next++};
                if (is_pair && is_python_list(item)) inner.list(item, false);
                else read_cell(item, inner);
            };
            if (PyDict_Check(value)) {
                const nb::object items = nb::steal(PyDict_Items(value));
                each_item(items.ptr(), [&](PyObject *item) { put(item, true); });
            } else {
                each_item(value, [&](PyObject *item) { put(item, pairs); });
            }
        }
        void matrix_row(const ColumnView &view) {
            Cell &to = cell(CellKind::list);
            to.size = view.elements;
            to.letters_at = self.table.elements.size();
            self.table.elements.resize(to.letters_at + to.size);
            Each each{self, column, row, static_cast<i64>(to.letters_at)};
            view.each(row, each);
        }
        struct Each {
            PythonTable &self;
            u32 column;
            u64 row;
            i64 next;
            Put put() { return {self, column, row, next++}; }
            void missing() { put().missing(); }
            void boolean(bool value) { put().boolean(value); }
            void integer(u64 magnitude, bool negative) { put().integer(magnitude, negative); }
            void number(f64 value) { put().number(value); }
        };
        bool named() const { return column < self.named_; }
        void missing() { cell(CellKind::missing); }
        void boolean(bool value) { cell(CellKind::boolean).flag = value; }
        void integer(u64 magnitude, bool negative) {
            Cell &to = cell(CellKind::integer);
            to.magnitude = magnitude;
            to.flag = negative;
        }
        void long_integer(f64, std::string_view digits) { letters(CellKind::long_integer, digits); }
        void number(f64 value) {
            if (!std::isinf(value)) cell(CellKind::number).number = value;
            else if (named()) wrong(shown_number(value));
        }
        void text(std::string_view text) {
            const Kind *const kind = self.table.columns[column].plan.kind.get();
            if (kind && kind->is_missing_word(text)) missing();
            else letters(CellKind::text, text);
        }
        void bytes(std::string_view raw) {
            const PlanColumn &plan = self.table.columns[column].plan;
            const bool takes_text = !plan.kind || plan.kind->takes_text();   // without a kind: the key
            if (named() && plan.kind && plan.kind->takes_bytes()) letters(CellKind::bytes, raw);
            else if (named() && takes_text && is_utf8(raw)) text(raw);
            else if (named()) wrong("bytes");
        }
        void surrogate() {
            if (named()) wrong("text with half a surrogate pair");
        }
        void other(PyObject *value) {
            if (!named()) return;
            if (converted || PyLong_Check(value)) return wrong(std::string(type_name(value)));
            const nb::object plain = self.convert_(nb::handle(value), column);
            if (plain.is_none()) return wrong(std::string(type_name(value)));
            converted = true;
            read_cell(plain.ptr(), *this);
        }
        void letters(CellKind kind, std::string_view text) {
            Cell &to = cell(kind);
            to.letters_at = self.table.letters.size();
            to.size = static_cast<u32>(text.size());
            self.table.letters += text;
        }
        void wrong(std::string got) {
            throw CellMistake{column, row, self.table.columns[column].plan.expected(), std::move(got)};
        }
    };

    void put(PyObject *value, u32 c, u64 r) {
        Put to{*this, c, r};
        const bool is_list = takes_list(c) && (is_python_list(value) || PyDict_Check(value));
        if (is_list) to.list(value, table.columns[c].plan.kind->form() == CellForm::pairs);
        else read_cell(value, to);
        // another field is left out where no row has a plain value
        table.columns[c].given |= c < named_ || table.cell(c, r).kind != CellKind::missing;
    }

    struct Place {
        nb::object key;
        u32 column;
    };

    nb::callable convert_;
    bool others_, matrices_, undecided_ = false;   // the last: no column but lists has shown that a dict is a row
    u32 named_ = 0;
    nb::dict names_, keys_;        // what a column's name and a row's key lead to; of flat rows the same
    std::optional<PythonTree> tree_;
    std::vector<Place> order_;     // of the keys of the row before
    std::vector<PythonColumn> held_;
};

}  // namespace st
