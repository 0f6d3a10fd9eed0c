#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/failpoint.h"
#include "bindings/bindings.h"
#include "train/ingest.h"
#include "train/ring_drain.h"
#include "decode/decode_plan.h"

namespace st {

namespace {

i64 deadline_ns(f64 timeout_s) { return monotonic_ns() + static_cast<i64>(timeout_s * 1e9); }

void make_ingest(Ingest *self, Arena &arena, Consumer &consumer, const std::string &format,
                 std::shared_ptr<DecodePlan> plan, const std::string &topic, i64 round_interval_ns, i64 batch_growth,
                 const std::vector<std::pair<i32, i64>> &end_offsets, bool bounded) {
    IngestSettings settings;
    settings.topic = topic;
    settings.round_interval_ns = round_interval_ns;
    settings.batch_growth = batch_growth;
    settings.end_offsets = end_offsets;
    settings.bounded = bounded;
    new (self) Ingest(arena, consumer, BatchFiller(format, std::move(plan)), std::move(settings));
}

// Ingest's filler on records that a program has in its hand: rounds without Kafka.
void bind_filler(nb::module_ &m) {
    nb::class_<SlotFiller>(m, "SlotFiller")
        .def(
            "__init__",
            [](SlotFiller *self, Arena &arena, const std::string &format, std::shared_ptr<DecodePlan> plan,
               i64 batch_growth) {
                new (self) SlotFiller(arena, BatchFiller(format, std::move(plan)), -1, batch_growth);
            },
            nb::arg("arena"), nb::arg("format"), nb::arg("plan"), nb::arg("batch_growth") = 0,
            nb::keep_alive<1, 2>())
        .def("start", &SlotFiller::start)
        .def(
            "take",
            [](SlotFiller &filler, nb::bytes value, i64 offset, i32 partition) {
                RecordView record;
                record.value = static_cast<const u8 *>(value.data());
                record.size = value.size();
                record.offset = offset;
                record.partition = partition;
                nb::gil_scoped_release release;
                filler.take(record);
            },
            nb::arg("value"), nb::arg("offset"), nb::arg("partition") = 0)
        .def("end", [](SlotFiller &filler) {
            filler.close(CloseReason::end);
            filler.end();
        });
}

void arm_failpoint(const std::string &name, i64 hit, int signal) {
    Failpoints::get().points[name] = {hit, signal};
    Failpoints::get().armed.store(true);
}

}  // namespace

void bind_ingest(nb::module_ &m) {
    m.def("arm_failpoint", &arm_failpoint, nb::arg("name"), nb::arg("hit"), nb::arg("signal"));
    nb::class_<Ingest>(m, "Ingest")
        .def("__init__", &make_ingest, nb::arg("arena"), nb::arg("consumer"), nb::arg("format"), nb::arg("plan"),
             nb::kw_only(), nb::arg("topic"), nb::arg("round_interval_ns"), nb::arg("batch_growth"),
             nb::arg("end_offsets"), nb::arg("bounded"),
             nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
        .def("start", &Ingest::start)
        .def("add_partition", &Ingest::add_partition, nb::arg("partition"))
        .def("read_with", &Ingest::read_with, nb::arg("consumer"), nb::keep_alive<1, 2>())
        .def(
            "run",
            [](Ingest &ingest, f64 timeout_s) {
                nb::gil_scoped_release release;
                return static_cast<u32>(ingest.run(deadline_ns(timeout_s)));
            },
            nb::arg("timeout_s"))
        .def_prop_ro("errors", &Ingest::errors);
    bind_filler(m);
    nb::class_<RingDrain>(m, "RingDrain").def(nb::init<Arena &>(), nb::arg("arena"), nb::keep_alive<1, 2>());
}

}  // namespace st
