// Predictions in the process that asks: Python rows → slot → plan → Python answers. One call is one snapshot's.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "bindings/answer_heads.h"
#include "bindings/bindings.h"
#include "bindings/python_columns.h"
#include "decode/bad_rows.h"
#include "predict/answers.h"
#include "predict/slot_predictor.h"

namespace st {
namespace {

using PlanObject = nb::typed<nb::object, Plan>;
using Rows = nb::typed<nb::handle, std::variant<NamedValues, nb::typed<nb::list, NamedValues>>>;
using FailedRows = nb::typed<nb::list, std::tuple<i64, std::string, std::string>>;   // row, path, reason
template <class Answers> using WithFailures = nb::typed<nb::tuple, Answers, FailedRows>;

// A slot and what fills it. One thread at a time; the parameters are the plan's and shared.
class RowScorer {
  public:
    // From `free_from` rows a batch on the GIL is given up while the plan runs: for less that costs more than it gives.
    RowScorer(PlanObject plan, std::shared_ptr<const DecodePlan> decode, const std::vector<AnswerHead> &heads,
              u32 free_from)
        : held_(plan), predictor_(nb::cast<Plan &>(plan), *decode), batch_(decode), rows_(decode), writer_(decode),
          free_from_(free_from), prediction_(text(prediction_key)), probabilities_(text(probabilities_key)) {
        if (width_of(heads) != predictor_.width())
            throw std::invalid_argument("the answers are not of the plan's width");
        for (const AnswerHead &each : heads) {
            Head head{text(each.name), each.width, {}, {}};
            for (const std::string &name : each.output_names()) {
                head.names.push_back(text(name));
                head.values.push_back(each.are_values ? value(name) : head.names.back());
            }
            several_ = !each.name.empty();
            heads_.push_back(std::move(head));
        }
    }

    // `rows`: a dict, or a list of dicts; a list's answers are a list, in which None stands for a row that failed.
    // Gives (answers, [(row, path, reason)]).
    WithFailures<nb::any> score_rows(Rows rows) {
        form_ = PyDict_Check(rows.ptr()) ? PythonForm::row : PythonForm::rows;
        rows_.begin(rows.ptr());
        begin(rows_);
        while (!next()) {}
        return answers();
    }

    // `columns`: a dict of lists and 1-dimensional arrays of numbers, of one length. Gives as score_rows().
    WithFailures<nb::typed<nb::list, nb::any>> score_columns(NamedValues given) {
        predict_columns(given);
        return answers();
    }

    // The same as (bytes of rows x width float64, [(row, path, reason)]), without those rows that failed.
    WithFailures<nb::bytes> outputs_of_columns(NamedValues given) {
        predict_columns(given);
        return nb::make_tuple(nb::bytes(values_.data(), values_.size() * sizeof(f64)), failed());
    }

  private:
    void predict_columns(const nb::dict &given) {
        PythonColumns columns(batch_.plan(), writer_, given);
        form_ = PythonForm::columns;
        begin(columns);
        if (!columns.needs_gil() && columns.rows() >= free_from_) {   // once: each hand-over may be waited for
            WithoutGil released;
            while (!next(true)) {}
        } else {
            while (!next()) {}
        }
    }

    void begin(RowSource &source) {
        passed_ = 0;
        values_.clear();
        failed_.clear();
        batch_.begin(source);
    }

    // One slot of rows; true after the last.
    bool next(bool released = false) {
        batch_.open();
        batch_.tally().clear();
        const bool done = batch_.next();
        if (!released && batch_.rows() >= free_from_) {
            WithoutGil free;
            predict();
        } else {
            predict();
        }
        return done;
    }

    // The slot's rows, and those passed beside them that cannot be used.
    void predict() {
        const RowTally &tally = batch_.tally();
        const u32 width = predictor_.width();
        const f32 *output = predictor_.predict(batch_);
        const auto take_until = [&](i64 end) {
            for (; passed_ < end; ++passed_, output += width) {
                if (is_finite(output, width))
                    for (u32 i = 0; i < width; ++i) values_.push_back(shortest(output[i]));
                else
                    failed_.push_back({passed_, "", std::string(prediction_not_finite)});
            }
        };
        const i64 end = passed_ + tally.trained + tally.dead + tally.filtered;
        const auto path = [this](i32 column, i64 row) { return python_path(batch_.plan(), column, row, form_); };
        each_bad_row(tally, path, [&](i64 row, const std::string &place, std::string_view reason) {
            take_until(row);
            failed_.push_back({passed_++, place, std::string(reason)});
            return true;
        });
        take_until(end);
    }

    nb::list failed() const {
        nb::list told;
        for (const Failed &each : failed_) told.append(nb::make_tuple(each.row, each.path, each.reason));
        return told;
    }

    nb::tuple answers() const {
        if (form_ == PythonForm::row)
            return nb::make_tuple(failed_.empty() ? answer(values_.data()) : nb::none(), failed());
        nb::object list = nb::steal(PyList_New(passed_));
        if (!list.is_valid()) throw nb::python_error();
        const f64 *values = values_.data();
        auto next = failed_.begin();
        for (i64 row = 0; row < passed_; ++row) {
            nb::object made = nb::none();
            if (next != failed_.end() && next->row == row) ++next;
            else made = answer(values), values += predictor_.width();
            PyList_SET_ITEM(list.ptr(), row, made.release().ptr());
        }
        return nb::make_tuple(list, failed());
    }

    nb::object answer(const f64 *row) const {
        nb::dict made;
        if (!several_) {
            const Head &head = heads_[0];
            put(made, prediction_, prediction(head, row));
            if (!head.names.empty()) put(made, probabilities_, probabilities(head, row));
            return made;
        }
        nb::dict predictions, of_classes;
        for (const Head &head : heads_) {
            put(predictions, head.name, prediction(head, row));
            if (!head.names.empty()) put(of_classes, head.name, probabilities(head, row));
            row += head.width;
        }
        put(made, prediction_, predictions);
        if (of_classes.size()) put(made, probabilities_, of_classes);
        return made;
    }

    struct Head {
        nb::object name;
        u32 width;
        std::vector<nb::object> names, values;   // of the classes
    };

    // The boolean or whole number that a class is named as.
    static nb::object value(const std::string &name) {
        if (name == "true" || name == "false") return nb::bool_(name == "true");
        PyObject *number = PyLong_FromString(name.c_str(), nullptr, 10);
        if (!number) throw nb::python_error();
        return nb::steal(number);
    }

    static nb::object prediction(const Head &head, const f64 *row) {
        return head.names.empty() ? nb::object(nb::float_(row[0])) : head.values[likeliest(row, head.width)];
    }

    static nb::dict probabilities(const Head &head, const f64 *row) {
        nb::dict made;
        for (u64 i = 0; i < head.names.size(); ++i) put(made, head.names[i], nb::float_(row[i]));
        return made;
    }

    static nb::str text(std::string_view text) { return nb::str(text.data(), text.size()); }

    static void put(const nb::dict &into, const nb::object &key, const nb::object &value) {
        if (PyDict_SetItem(into.ptr(), key.ptr(), value.ptr()) != 0) throw nb::python_error();
    }

    struct Failed {
        i64 row;
        std::string path, reason;   // path "": the row alone
    };

    nb::object held_;
    SlotPredictor predictor_;
    BatchFiller batch_;
    PythonRows rows_;
    RowWriter writer_;   // of columns
    u32 free_from_;
    nb::object prediction_, probabilities_;
    bool several_ = false;
    std::vector<Head> heads_;
    PythonForm form_ = PythonForm::row;   // of many rows the answers are a list
    i64 passed_ = 0;                  // rows
    std::vector<f64> values_;         // outputs of the rows that have not failed
    std::vector<Failed> failed_;
};

}  // namespace

void bind_row_scorer(nb::module_ &m) {
    nb::class_<RowScorer>(m, "RowScorer",
                          "Predicts Python rows with one snapshot: slot, plan, answers. One thread at a time.")
        .def(
            "__init__",
            [](RowScorer *self, PlanObject plan, std::shared_ptr<DecodePlan> decode,
               const AnswerHeads &heads, u32 free_from) {
                new (self) RowScorer(std::move(plan), std::move(decode), answer_heads(heads), free_from);
            },
            nb::arg("plan"), nb::arg("decode_plan"), nb::arg("heads"), nb::arg("free_from"))
        .def("score_rows", &RowScorer::score_rows, nb::arg("rows"),
             "Returns (an answer or a list of them, [(row, path, reason)]); None is the answer of a row that failed.")
        .def("score_columns", &RowScorer::score_columns, nb::arg("columns"),
             "Does the same for lists and 1-dimensional arrays of numbers of one length.")
        .def("outputs_of_columns", &RowScorer::outputs_of_columns, nb::arg("columns"),
             "Does the same as (rows, width) float64, without those rows that failed.");
}

}  // namespace st
