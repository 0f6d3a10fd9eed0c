#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"
#include "bindings/plan_column.h"
#include "bindings/python_around.h"
#include "bindings/python_cells.h"
#include "decode/batch_filler.h"

namespace st {
namespace {

// A column as streamtrain/columns/rows.py describes it; one whose cells it does not describe is passed over.
PlanColumn kept_column(nb::dict given, std::vector<nb::object> &values) {
    PlanColumn column = column_of(given);
    if (!given.contains("cells")) return column;
    PythonCells::Settings settings;
    const auto form = nb::cast<std::string>(given["cells"]);
    settings.form = form == "list" ? CellForm::list : form == "pairs" ? CellForm::pairs : CellForm::value;
    settings.is_text = nb::cast<bool>(given["is_text"]);
    settings.takes_names = nb::cast<bool>(given["takes_names"]);
    if (const auto unit = nb::cast<std::optional<std::pair<i64, i64>>>(given["unit"]))
        settings.unit = TimeUnit{unit->first, unit->second};
    settings.namespaces = nb::cast<std::optional<std::vector<std::string>>>(given["namespaces"]);
    column.kind = std::make_shared<PythonCells>(std::move(settings), values);
    column.missing = Missing::value;
    column.blocks = {nb::cast<std::string>(given["block"])};
    return column;
}

// The rows of one record after the other, with their cells as they stand there. One thread at a time.
class RowReader {
  public:
    RowReader(nb::handle format, nb::list columns, std::vector<u32> short_columns, const SlotLayout &layout) {
        std::vector<PlanColumn> kept;
        for (nb::handle column : columns) kept.push_back(kept_column(nb::cast<nb::dict>(column), values_));
        batch_ = std::make_unique<BatchFiller>(format_of(format),
                                               DecodePlan::make(std::move(kept), std::move(short_columns), layout));
    }

    // Dicts of the rows that can be read, and (row_from, row_to, path, reason, remainder) of the others.
    nb::tuple read(nb::bytes record, nb::handle around) {
        const PythonAround *message = around.is_none() ? nullptr : &nb::cast<const PythonAround &>(around);
        const RecordView view = PythonAround::view(record.data(), record.size(), message);
        nb::list rows, dead;
        batch_->tally().clear();
        batch_->begin(view);
        for (bool done = false; !done;) {
            batch_->open();
            done = batch_->next();
            for (u32 row = 0; row < batch_->rows(); ++row) rows.append(cells_of(row));
            values_.clear();
        }
        for (const DeadRows &each : batch_->tally().dead_rows)
            dead.append(nb::make_tuple(each.row_from, each.row_to, each.path, each.reason, each.remainder));
        return nb::make_tuple(rows, dead);
    }

  private:
    nb::dict cells_of(u32 row) const {
        const DecodePlan &plan = batch_->plan();
        nb::dict cells;
        for (const PlanColumn &column : plan.columns) {
            const auto *const kind = static_cast<const PythonCells *>(column.kind.get());
            if (!kind) continue;
            const DecodePlan::At &block = plan.blocks[kind->place().block];
            u32 number;
            std::memcpy(&number, batch_->slot() + block.offset + row * block.stride + kind->place().offset,
                        sizeof number);
            if (number) cells[nb::str(column.name.c_str())] = values_[number - 1];
        }
        return cells;
    }

    std::vector<nb::object> values_;   // of the batch at hand
    std::unique_ptr<BatchFiller> batch_;
};

}  // namespace

void bind_row_reader(nb::module_ &m) {
    nb::class_<RowReader>(m, "RowReader")
        .def(nb::init<nb::handle, nb::list, std::vector<u32>, const SlotLayout &>(), nb::arg("format"),
             nb::arg("columns"), nb::arg("short_columns"), nb::arg("layout"),
             nb::sig("def __init__(self, format: object, columns: list[dict[str, Any]], short_columns: Sequence[int], "
                     "layout: SlotLayout) -> None"))
        .def("read", &RowReader::read, nb::arg("record"), nb::arg("around") = nb::none(),
             nb::sig("def read(self, record: bytes, around: RecordAround | None = None) -> "
                     "tuple[list[dict[str, Any]], list[tuple[int, int, str, str, bool]]]"),
             "Returns the rows that can be read, and (row_from, row_to, path, reason, remainder) of the others.");
}

}  // namespace st
