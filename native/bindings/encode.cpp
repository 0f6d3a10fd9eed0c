// Python rows → records, in every format. The rows are read with the GIL, a record is encoded without it.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/pair.h>
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

std::vector<PlanColumn> plan_columns(nb::list columns) {
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
    PythonEncoder(nb::handle format, nb::list columns, nb::callable convert)
        : encoder_(make_encoder(format_of(format))),
          rows_(plan_columns(columns), std::move(convert), encoder_->keeps_others(),
                encoder_->keeps_matrices()) {}

    // The record of one dict; None where it may be columns.
    nb::object encode_row(nb::dict row) {
        return checked([&]() -> nb::object {
            if (!rows_.read_row(row.ptr())) return nb::none();
            return bytes({0, 1, nullptr});
        });
    }

    void read_rows(nb::list rows) {
        checked([&] { rows_.read_rows(rows.ptr()); });
    }

    void read_columns(nb::dict columns, u64 rows) {
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

    nb::object encode(u64 first, u64 count) {
        if (first + count > rows_.table.rows) throw std::invalid_argument("rows behind the last one that was read");
        return checked([&] { return bytes({first, count, nullptr}); });
    }

    nb::object encode_chosen(const std::vector<u32> &chosen) {
        for (u32 row : chosen)
            if (row >= rows_.table.rows) throw std::invalid_argument("a row behind the last one that was read");
        return checked([&] { return bytes({0, chosen.size(), chosen.data()}); });
    }

    void clear() { rows_.clear(); }

    u64 most_rows() const { return encoder_->most_rows(); }

  private:
    nb::object bytes(PickedRows picked) {
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
    nb::enum_<CsvCell>(m, "CsvCell")
        .value("TEXT", CsvCell::text).value("NUMBER", CsvCell::number).value("TIME", CsvCell::time);
    nb::list words;
    for (const std::string_view word : MISSING_WORDS) words.append(nb::str(word.data(), word.size()));
    m.attr("MISSING_WORDS") = words;
    m.def(
        "csv_lines",
        [](nb::bytes text, u64 most, bool last, char delimiter, char quote, bool skip_space) {
            CsvTable table(delimiter, quote, skip_space);
            const auto found = table.whole_lines({text.c_str(), text.size()}, most, last);
            return nb::make_tuple(found.rows, found.bytes);
        },
        nb::arg("text"), nb::arg("most"), nb::arg("last"), nb::arg("delimiter"), nb::arg("quote"),
        nb::arg("skip_space"));
    nb::class_<PythonEncoder>(m, "RecordEncoder")
        .def(nb::init<nb::handle, nb::list, nb::callable>(), nb::arg("format"), nb::arg("columns"),
             nb::arg("convert"))
        .def("encode_row", &PythonEncoder::encode_row, nb::arg("row"))
        .def("read_rows", &PythonEncoder::read_rows, nb::arg("rows"))
        .def("read_columns", &PythonEncoder::read_columns, nb::arg("columns"), nb::arg("rows"))
        .def("read_csv", &PythonEncoder::read_csv, nb::arg("text"), nb::arg("order"), nb::arg("rows"),
             nb::arg("delimiter"), nb::arg("quote"), nb::arg("skip_space"))
        .def("encode", &PythonEncoder::encode, nb::arg("first"), nb::arg("count"))
        .def("encode_chosen", &PythonEncoder::encode_chosen, nb::arg("rows"))
        .def("clear", &PythonEncoder::clear)
        .def_prop_ro("most_rows", &PythonEncoder::most_rows);
}

}  // namespace st
