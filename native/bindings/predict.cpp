#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/answer_heads.h"
#include "bindings/bindings.h"
#include "bindings/event_list.h"
#include "bindings/plan_column.h"
#include "bindings/python_around.h"
#include "predict/body_scorer.h"
#include "predict/predictor.h"

namespace st {
namespace {

using Released = nb::call_guard<WithoutGil>;

using PlanObject = nb::typed<nb::object, Plan>;

// Keeps a Python object as long as native code that does not know Python needs its memory.
std::shared_ptr<void> keep(nb::object object) {
    return {object.release().ptr(), [](void *pointer) {
                WithGil held;
                nb::handle(static_cast<PyObject *>(pointer)).dec_ref();
            }};
}

// (body, error, rows, errors) of as many requests as are answered at once, without Kafka: request i as if it stood at
// offset i of partition 0, where no message is given.
nb::typed<nb::list, nb::typed<nb::tuple, nb::bytes, nb::str, u32, u32>> score(
    RequestScorer &scorer, const std::string &topic, const std::vector<std::optional<nb::bytes>> &requests,
    const std::vector<const PythonAround *> &around) {
    if (!around.empty() && around.size() != requests.size())
        throw std::invalid_argument("each request has one message around it");
    std::vector<RecordView> records;
    for (const auto &request : requests) {
        const u64 i = records.size();
        const void *value = request ? request->c_str() : nullptr;
        const PythonAround *message = around.empty() ? nullptr : around[i];
        records.push_back(PythonAround::view(value, request ? request->size() : 0, message));
        if (around.empty()) records.back().offset = static_cast<i64>(i);
    }
    std::vector<Answer> answers;
    scorer.score(topic, records.data(), records.size(), answers);
    nb::list out;
    for (const Answer &answer : answers)
        out.append(nb::make_tuple(nb::bytes(answer.body.data(), answer.body.size()),
                                  nb::str(answer.error.data(), answer.error.size()), answer.rows, answer.errors));
    return out;
}

// (text, form, rows, errors): see BodyAnswer.
auto score_body(BodyScorer &scorer, const nb::bytes &body, bool released) {
    const std::string_view bytes(static_cast<const char *>(body.data()), body.size());
    BodyAnswer answer;
    if (released) {
        WithoutGil free;
        answer = scorer.score(bytes);
    } else {
        answer = scorer.score(bytes);
    }
    return std::tuple(nb::bytes(answer.text.data(), answer.text.size()), answer.form, answer.rows, answer.errors);
}

void bind_body_scorer(nb::module_ &m) {
    nb::enum_<BodyAnswer::Form>(m, "BodyForm",
                      "The form of the answer to a body: one row's object, an array, or an error as an object.")
        .value("ROW", BodyAnswer::Form::row)
        .value("ROWS", BodyAnswer::Form::rows)
        .value("BROKEN", BodyAnswer::Form::broken)
        .value("TOO_LARGE", BodyAnswer::Form::too_large);
    nb::class_<BodyScorer>(m, "BodyScorer",
                           "Answers bodies of JSON with one snapshot: bytes, slot, plan, JSON. One thread at a time.")
        .def(
            "__init__",
            [](BodyScorer *self, PlanObject plan, std::shared_ptr<DecodePlan> decode, const AnswerHeads &heads,
               u64 most_bytes) {
                Plan &native = nb::cast<Plan &>(plan);
                new (self) BodyScorer(native, keep(plan), std::move(decode), AnswerWriter(answer_heads(heads)),
                                      most_bytes);
            },
            nb::arg("plan"), nb::arg("decode_plan"), nb::arg("heads"), nb::arg("most_bytes"))
        .def("score", score_body, nb::arg("body"), nb::arg("released"),
             "Returns (text, form, rows, errors); an answer of more than `most_bytes` is refused.\n\n"
             "`released`: without the GIL.");
}

}   // namespace

void bind_predict(nb::module_ &m) {
    bind_body_scorer(m);
    nb::class_<RequestScorer>(m, "RequestScorer",
                              "Answers requests with one snapshot: bytes, slot, plan, JSON. One thread at a time.")
        .def(
            "__init__",
            [](RequestScorer *self, PlanObject plan, std::shared_ptr<DecodePlan> decode, FormatName format,
               const AnswerHeads &heads, i64 version, const std::string &digest) {
                Plan &native = nb::cast<Plan &>(plan);
                new (self) RequestScorer(native, keep(plan), std::move(decode), format_of(format),
                                         AnswerWriter(answer_heads(heads)), version, digest);
            },
            nb::arg("plan"), nb::arg("decode_plan"), nb::arg("format"), nb::arg("heads"), nb::arg("version"),
            nb::arg("digest"))
        .def_prop_ro("version", &RequestScorer::version)
        .def("score", score, nb::arg("topic"), nb::arg("requests"),
             nb::arg("around") = std::vector<const PythonAround *>(),
             "Returns (body, why no row was answered or empty, rows, errors) of as many requests as are answered at\n"
             "once. They are answered as if they stood in `topic` at partition 0 from offset 0 on, or in the messages\n"
             "`around`.");

    nb::class_<Predictor>(m, "Predictor",
                          "One thread runs it; serve(), counters() and drain_events() may be called by others.")
        .def(
            "__init__",
            [](Predictor *self, const KafkaSettings &consumer, const KafkaSettings &producer,
               const std::string &requests, const std::string &predictions, bool exactly_once, bool until_end,
               bool traced) {
                new (self)
                    Predictor({consumer, producer, requests, predictions, exactly_once, traced, until_end});
            },
            nb::arg("consumer"), nb::arg("producer"), nb::arg("requests"), nb::arg("predictions"),
            nb::arg("exactly_once"), nb::arg("until_end"), nb::arg("traced") = false)
        .def("serve", &Predictor::serve, Released(), nb::arg("scorers"),
             "Serves scorers by name, from the next batch on; the first answers a request that names none.\n\n"
             "ValueError for a name that is there twice.")
        .def("run", &Predictor::run, Released(), nb::arg("milliseconds"),
             "Works for about that long; True when until_end has been reached.")
        .def("look_again", &Predictor::look_again,
             "Looks again at requests that wait for a schema. Between two run()s.")
        .def("finish", &Predictor::finish, Released(), nb::arg("timeout_ms"),
             "Delivers what is on its way; False: not all arrived in time.")
        .def("close", &Predictor::close, Released(), nb::arg("timeout_ms"),
             "Finishes, then commits and leaves the group.")
        .def("drain_traced",
             [](Predictor &self) {
                 const auto raw = [](const std::string &text) { return nb::bytes(text.data(), text.size()); };
                 nb::list out;
                 for (const Traced &t : self.traced().drain())
                     out.append(nb::make_tuple(raw(t.parent), raw(t.state), t.partition, t.offset, t.begun_ns,
                                               t.ended_ns, t.version, t.rows, t.errors, raw(t.error)));
                 return nb::make_tuple(out, self.traced().left_out());
             },
             nb::sig("def drain_traced(self) -> "
                     "tuple[list[tuple[bytes, bytes, int, int, int, int, int, int, int, bytes]], int]"),
             "Returns answered requests whose header traceparent says sampled, and how many more there were.\n\n"
             "Between two run()s, where `traced`. Each: traceparent, tracestate, partition, offset, when its batch\n"
             "was taken and its answer delivered in ns since 1970, version, rows, rows with errors, why no row was\n"
             "answered.")
        .def("drain_events",
             [](Predictor &self) { return event_list(self.drain_events()); })
        .def("counters", [](const Predictor &self) {
            PredictorCounters c = self.counters();
            nb::typed<nb::dict, nb::str, i64> out;
            out["requests"] = c.requests;
            out["rows"] = c.rows;
            out["errors"] = c.errors;
            out["row_errors"] = c.row_errors;
            out["batches"] = c.batches;
            out["rewinds"] = c.rewinds;
            out["newest_request_ms"] = c.newest_request_ms;
            out["waiting"] = c.waiting;
            return out;
        });
}

}   // namespace st
