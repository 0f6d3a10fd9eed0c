// Where records come from, and the loop that takes them.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/failpoint.h"
#include "bindings/addresses.h"
#include "bindings/bindings.h"
#include "bindings/iterator_source.h"
#include "bindings/plan_column.h"
#include "source/kafka.h"
#include "source/memory.h"
#include "train/ingest.h"

namespace st {

namespace {

void bind_sources(nb::module_ &m) {
    nb::class_<Source>(m, "Source");
    nb::class_<KafkaSource, Source>(m, "KafkaSource")
        .def(nb::init<Consumer &, std::string, std::vector<std::pair<i32, i64>>, bool>(), nb::arg("consumer"),
             nb::arg("topic"), nb::arg("end_offsets"), nb::arg("bounded"), nb::keep_alive<1, 2>())
        .def("read_with", &KafkaSource::read_with, nb::arg("consumer"), nb::keep_alive<1, 2>(),
             "Reads with it from now on, in the place of the one before; Ingest.rewind() comes next.")
        .def_prop_ro("ended", &KafkaSource::ended);
    nb::class_<MemorySource, Source>(m, "MemorySource", "Records that a program puts in.")
        .def(nb::init<>())
        .def(
            "put",
            [](MemorySource &source, nb::bytes record, f64 timeout_s, i32 partition, i64 offset, i64 span) {
                std::string copy(record.c_str(), record.size());
                WithoutGil release;
                return source.put(std::move(copy), deadline_ns(timeout_s), {partition, offset, span});
            },
            nb::arg("record"), nb::arg("timeout_s"), nb::arg("partition") = -1, nb::arg("offset") = -1,
            nb::arg("span") = 1,
            "Waits while too much lies there; False after the time-out, or when nobody takes any more.\n\n"
            "By default the record is of one partition, its offset its number; `span`: offsets it takes up.")
        .def_prop_ro("starts",
                     [](const MemorySource &source) {
                         std::vector<std::pair<i32, i64>> found;
                         for (const StartPosition &start : source.starts())
                             found.emplace_back(start.partition, start.offset);
                         return found;
                     },
                     "Partitions and offsets, once a loop has started.")
        .def("end_round", &MemorySource::end_round,
             "Ends a round: records put before and after this call belong to different rounds.")
        .def("end", &MemorySource::end)
        .def("close", &MemorySource::close, "Ends it for good: nobody takes any more.");
    nb::class_<IteratorSource, Source>(m, "IteratorSource",
                                       "Records of one partition, offset and value, taken one after the other.")
        .def(nb::init<nb::typed<nb::iterator, std::pair<i64, nb::bytes>>>(), nb::arg("records"));
}

void bind_loop(nb::module_ &m) {
    nb::enum_<IngestStatus>(m, "IngestStatus", nb::is_arithmetic())
        .value("WORKING", IngestStatus::working)
        .value("ENDED", IngestStatus::ended)
        .value("LEAVE", IngestStatus::leave)
        .value("WAITING", IngestStatus::waiting,
               "As WORKING, but some partition's next record needs a schema that is not known yet.")
        .value("ROUND_ENDED", IngestStatus::round_ended, "As WORKING: the source has ended the round that was open.");
    nb::class_<RoundCutter>(m, "RoundCutter",
                            "The state that the ingest threads share: the numbers of slots and the ends of rounds.")
        .def(nb::init<Arena &, i64, i64, i64>(), nb::arg("arena"), nb::kw_only(), nb::arg("round_interval_ns") = -1,
             nb::arg("batch_growth") = 0, nb::arg("min_batch_rows") = 1, nb::keep_alive<1, 2>())
        .def_prop_ro("partitions", &RoundCutter::partitions, "Partitions that the run began with.")
        .def("leave", [](RoundCutter &cutter) { cutter.end().leave(); }, "Makes every thread's run() return LEAVE.");
    nb::class_<Ingest>(m, "Ingest", "The loop of one thread; all are built before the first start().")
        .def(
            "__init__",
            [](Ingest *self, RoundCutter &cutter, Source &source, FormatName format, std::shared_ptr<DecodePlan> plan) {
                new (self) Ingest(cutter, source, BatchFiller(format_of(format), std::move(plan)));
            },
            nb::arg("cutter"), nb::arg("source"), nb::arg("format"), nb::arg("plan"), nb::keep_alive<1, 2>(),
            nb::keep_alive<1, 3>())
        .def("start", &Ingest::start)
        .def("owns", &Ingest::owns, nb::arg("partition"), "No other thread reads the partition.")
        .def("add_partition", &Ingest::add_partition, nb::arg("partition"))
        .def("rewind", &Ingest::rewind, "Lets the source begin again where this has got to.")
        .def(
            "run",
            [](Ingest &ingest, f64 timeout_s) {
                WithoutGil release;
                return ingest.run(deadline_ns(timeout_s));
            },
            nb::arg("timeout_s"));
}

void arm_failpoint(const std::string &name, i64 hit, int signal) { Failpoints::get().arm(name, hit, signal); }

}  // namespace

void bind_source(nb::module_ &m) {
    m.def("arm_failpoint", &arm_failpoint, nb::arg("name"), nb::arg("hit"), nb::arg("signal"));
    bind_sources(m);
    bind_loop(m);
}

}  // namespace st
