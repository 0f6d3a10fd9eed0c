// Python rows → records, in every format. The rows are read with the GIL, a record is encoded without it.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings/bindings.h"
#include "bindings/plan_column.h"
#include "bindings/python_csv.h"
#include "bindings/python_table.h"
#include "decode/record_encoder.h"

namespace st {
namespace {

constexpr u64 FREE_CELLS = 8192;   // from which on the GIL is given up: for fewer that costs more than it gives

// A CellMistake as Python sees it: ValueError((row, column, expected, got)).
[[noreturn]] void raise(const RowTable &table, const CellMistake &mistake) {
    const bool is_named = mistake.column == CsvTable::NO_CELL || !mistake.field.empty();
    const std::string &name = is_named ? mistake.field : table.columns[mistake.column].plan.name;
    PyErr_SetObject(PyExc_ValueError, nb::make_tuple(mistake.row, name, mistake.expected, mistake.got).ptr());
    throw nb::python_error();
}

using Convert = nb::typed<nb::callable, nb::any(nb::any, i64)>;

std::vector<PlanColumn> plan_columns(Columns columns) {
    std::vector<PlanColumn> made;
    for (nb::handle column : columns) made.push_back(column_of(nb::cast<nb::dict>(column)));
    return made;
}

class PythonEncoder {
    template <class Call>
    auto checked(Call call) {
        try {
            return call();
        } catch (const CellMistake &mistake) {
            raise(rows_.table, mistake);
        }
    }

  public:
    PythonEncoder(FormatName format, Columns columns, Convert convert)
        : encoder_(make_encoder(format_of(format))),
          rows_(plan_columns(columns), std::move(convert), encoder_->keeps_others(),
                encoder_->keeps_matrices()) {}

    // The record of one dict; None where it may be columns.
    std::optional<nb::bytes> encode_row(NamedValues row) {
        return checked([&]() -> std::optional<nb::bytes> {
            if (!rows_.read_row(row.ptr())) return {};
            return bytes({0, 1, nullptr});
        });
    }

    void read_rows(nb::typed<nb::list, NamedValues> rows) {
        checked([&] { rows_.read_rows(rows.ptr()); });
    }

    void read_columns(NamedValues columns, u64 rows) {
        checked([&] { rows_.read_columns(columns, rows); });
    }

    void read_csv(nb::bytes text, const std::vector<std::pair<i64, CsvCell>> &order, u64 rows, char delimiter,
                  char quote, bool skip_space) {
        std::vector<CsvTable::Field> fields;
        for (const auto &[column, is] : order) {
            if (column >= static_cast<i64>(rows_.table.columns.size()))
                throw std::invalid_argument("a column of CSV text that there is not");
            fields.push_back({column, is});
        }
        checked([&] {
            rows_.start(rows);
            CsvTable(delimiter, quote, skip_space).read({text.c_str(), text.size()}, fields, rows_.table);
            rows_.show_count();
        });
    }

    nb::bytes encode(u64 first, u64 count) {
        if (first + count > rows_.table.rows) throw std::invalid_argument("rows behind the last one that was read");
        return checked([&] { return bytes({first, count, nullptr}); });
    }

    nb::bytes encode_chosen(const std::vector<u32> &chosen) {
        for (u32 row : chosen)
            if (row >= rows_.table.rows) throw std::invalid_argument("a row behind the last one that was read");
        return checked([&] { return bytes({0, chosen.size(), chosen.data()}); });
    }

    void clear() { rows_.clear(); }

    u64 most_rows() const { return encoder_->most_rows(); }

  private:
    nb::bytes bytes(PickedRows picked) {
        {
            std::optional<WithoutGil> released;
            if (picked.count * rows_.table.columns.size() >= FREE_CELLS) released.emplace();
            encoder_->encode(rows_.table, picked, record_);
        }
        return nb::bytes(record_.data(), record_.size());
    }

    std::unique_ptr<RecordEncoder> encoder_;
    PythonTable rows_;
    std::string record_;
};

}  // namespace

void bind_encode(nb::module_ &m) {
    nb::enum_<CsvCell>(m, "CsvCell",
                       "The type that a cell of a line is read as.\n\n"
                       "NUMBER: a number, if it is one. TIME: a number, or ISO 8601 as ms.")
        .value("TEXT", CsvCell::text).value("NUMBER", CsvCell::number).value("TIME", CsvCell::time);
    nb::list words;
    for (const std::string_view word : MISSING_WORDS) words.append(nb::str(word.data(), word.size()));
    m.attr("MISSING_WORDS") = words;
    m.def(
        "csv_lines",
        [](nb::bytes text, u64 most, bool last, char delimiter, char quote, bool skip_space) {
            CsvTable table(delimiter, quote, skip_space);
            const auto found = table.whole_lines({text.c_str(), text.size()}, most, last);
            return std::pair(found.rows, found.bytes);
        },
        nb::arg("text"), nb::arg("most"), nb::arg("last"), nb::arg("delimiter"), nb::arg("quote"),
        nb::arg("skip_space"),
        "Returns how many whole lines a text begins with, up to `most`, and their bytes.\n\n"
        "`last`: nothing comes behind it. `skip_space`: spaces before a cell are none of it.");
    nb::class_<PythonEncoder>(m, "RecordEncoder",
        "Python rows to records of one format. One thread at a time.\n\n"
        "`columns` are Schema.native_columns(); `convert(value, column)` gives a plain value for one of another type,\n"
        "or None. Each call raises ValueError((row, column, expected, got)) for a cell its column cannot take.")
        .def(nb::init<FormatName, Columns, Convert>(), nb::arg("format"), nb::arg("columns"),
             nb::arg("convert"))
        .def("encode_row", &PythonEncoder::encode_row, nb::arg("row"),
             "Returns None if the dict is no row but columns.")
        .def("read_rows", &PythonEncoder::read_rows, nb::arg("rows"))
        .def("read_columns", &PythonEncoder::read_columns, nb::arg("columns"), nb::arg("rows"))
        .def("read_csv", &PythonEncoder::read_csv, nb::arg("text"), nb::arg("order"), nb::arg("rows"),
             nb::arg("delimiter"), nb::arg("quote"), nb::arg("skip_space"),
             "Reads `rows` lines. `order`: of each cell its column, below 0 of none, and the type it is read as.\n\n"
             "A line that is none is a mistake without a column's name.")
        .def("encode", &PythonEncoder::encode, nb::arg("first"), nb::arg("count"),
             "Returns a record of `count` of the rows read last.")
        .def("encode_chosen", &PythonEncoder::encode_chosen, nb::arg("rows"))
        .def("clear", &PythonEncoder::clear, "Lets go of the arrays read.")
        .def_prop_ro("most_rows", &PythonEncoder::most_rows, "The largest number of rows in one record.");
}

}  // namespace st
