// Predictions in the process that asks: Python rows → slot → plan → Python answers. One call is one snapshot's.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"
#include "bindings/python_columns.h"
#include "predict/answers.h"
#include "predict/slot_predictor.h"

namespace st {
namespace {

// A slot and what fills it. One thread at a time; the parameters are the plan's and shared.
class RowScorer {
  public:
    // From `free_from` rows a batch on the GIL is given up while the plan runs: for less that costs more than it gives.
    RowScorer(nb::object plan, std::shared_ptr<const DecodePlan> decode, const std::vector<std::string> &classes,
              u32 free_from)
        : held_(plan), slot_(nb::cast<Plan &>(plan), decode), decode_(decode), rows_(decode), writer_(decode),
          free_from_(free_from), prediction_(nb::str("prediction")), probabilities_(nb::str("probabilities")) {
        for (const std::string &name : output_names(slot_.width(), classes)) names_.push_back(nb::str(name.c_str()));
    }

    // `rows`: a dict, or a list of dicts; a list's answers are a list, in which None stands for a row that failed.
    // Gives (answers, [(row, path, reason)]).
    nb::tuple score_rows(nb::handle rows) {
        const bool many = !PyDict_Check(rows.ptr());
        begin();
        bool done = false;
        while (!done) {
            RowSink sink = slot_.empty_slot();
            done = rows_.fill(rows.ptr(), passed_, sink, tally_);
            if (sink.rows >= free_from_) {
                nb::gil_scoped_release released;
                predict(sink.rows);
            } else {
                predict(sink.rows);
            }
        }
        return answers(many);
    }

    // `columns`: a dict of lists and 1-dimensional arrays of numbers, of one length. Gives as score_rows().
    nb::tuple score_columns(nb::dict given) {
        const PythonColumns columns(*decode_, given);
        begin();
        if (!columns.needs_gil() && columns.rows() >= free_from_) {   // once for all: each hand-over may be waited for
            nb::gil_scoped_release released;
            while (!next(columns)) {}
        } else {
            while (!next(columns)) {}
        }
        return answers(true);
    }

  private:
    void begin() {
        passed_ = 0;
        values_.clear();
        failed_.clear();
        tally_.clear();
    }

    // One slot of the columns; true after the last. Called without the GIL where no column needs it.
    bool next(const PythonColumns &columns) {
        RowSink sink = slot_.empty_slot();
        const bool done = columns.fill(writer_, static_cast<u64>(passed_), sink, tally_);
        if (columns.needs_gil() && sink.rows >= free_from_) {
            nb::gil_scoped_release released;
            predict(sink.rows);
        } else {
            predict(sink.rows);
        }
        return done;
    }

    // The slot's rows, and those passed beside them that cannot be used.
    void predict(u32 rows) {
        const i64 from = passed_;
        passed_ += rows + tally_.dead;
        const u32 width = slot_.width();
        const f32 *output = slot_.predict(rows);
        auto dead = tally_.dead_rows.begin();
        for (i64 row = from; row < passed_; ++row) {
            if (dead != tally_.dead_rows.end() && dead->row_from == row) {
                failed_.push_back({row, std::move(dead->path), std::move(dead->reason)});
                ++dead;
                continue;
            }
            if (is_finite(output, width))
                for (u32 i = 0; i < width; ++i) values_.push_back(shortest(output[i]));
            else
                failed_.push_back({row, "", "the prediction is not finite"});
            output += width;
        }
        tally_.clear();
    }

    nb::tuple answers(bool many) const {
        nb::list failed;
        for (const Failed &each : failed_) failed.append(nb::make_tuple(each.row, each.path, each.reason));
        if (!many) return nb::make_tuple(failed_.empty() ? answer(values_.data()) : nb::none(), failed);
        nb::object list = nb::steal(PyList_New(passed_));
        if (!list.is_valid()) throw nb::python_error();
        const f64 *values = values_.data();
        auto next = failed_.begin();
        for (i64 row = 0; row < passed_; ++row) {
            nb::object made = nb::none();
            if (next != failed_.end() && next->row == row) ++next;
            else made = answer(values), values += slot_.width();
            PyList_SET_ITEM(list.ptr(), row, made.release().ptr());
        }
        return nb::make_tuple(list, failed);
    }

    nb::object answer(const f64 *row) const {
        nb::dict made;
        if (names_.empty()) {
            put(made, prediction_, nb::float_(row[0]));
            return made;
        }
        nb::dict probabilities;
        for (u64 i = 0; i < names_.size(); ++i) put(probabilities, names_[i], nb::float_(row[i]));
        put(made, prediction_, names_[likeliest(row, slot_.width())]);
        put(made, probabilities_, probabilities);
        return made;
    }

    static void put(const nb::dict &into, const nb::object &key, const nb::object &value) {
        if (PyDict_SetItem(into.ptr(), key.ptr(), value.ptr()) != 0) throw nb::python_error();
    }

    struct Failed {
        i64 row;
        std::string path, reason;   // path "": the row alone
    };

    nb::object held_;
    SlotPredictor slot_;
    std::shared_ptr<const DecodePlan> decode_;
    PythonRows rows_;
    RowWriter writer_;   // of columns
    u32 free_from_;
    nb::object prediction_, probabilities_;
    std::vector<nb::object> names_;   // of the classes
    RowTally tally_;                  // of the slot being filled
    i64 passed_ = 0;                  // rows
    std::vector<f64> values_;         // outputs of the rows that have not failed
    std::vector<Failed> failed_;
};

}  // namespace

void bind_row_scorer(nb::module_ &m) {
    nb::class_<RowScorer>(m, "RowScorer")
        .def(
            "__init__",
            [](RowScorer *self, nb::object plan, std::shared_ptr<DecodePlan> decode,
               const std::vector<std::string> &classes, u32 free_from) {
                new (self) RowScorer(std::move(plan), std::move(decode), classes, free_from);
            },
            nb::arg("plan"), nb::arg("decode_plan"), nb::arg("classes"), nb::arg("free_from"))
        .def("score_rows", &RowScorer::score_rows, nb::arg("rows"))
        .def("score_columns", &RowScorer::score_columns, nb::arg("columns"));
}

}  // namespace st
