// A worker's rounds, the thread that copies their log, and what fills rounds by it again.
#include <nanobind/stl/function.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/addresses.h"
#include "bindings/bindings.h"
#include "bindings/plan_column.h"
#include "bindings/struct_layout.h"
#include "train/contribution_fold.h"
#include "train/first_moments.h"
#include "train/log_filler.h"
#include "train/round_log.h"
#include "train/worker.h"

namespace st {

namespace {

void moments_of_slots(const StateLayout &layout, const SlotLayout &slot_layout, const std::vector<Address> &slots,
                      Address base) {
    std::vector<const u8 *> each;
    for (Address slot : slots) each.push_back(reinterpret_cast<const u8 *>(slot));
    WithoutGil release;
    first_moments(layout, slot_layout, each, reinterpret_cast<u8 *>(base));
}

void bind_worker(nb::module_ &m) {
    m.def("first_moments", &moments_of_slots, nb::arg("layout"), nb::arg("slot_layout"), nb::arg("slots"),
          nb::arg("base"),
          "Writes the first mean and variance of each column, from the slots at these addresses, into a statistics\n"
          "part. `base` is the address of that part.");
    nb::enum_<WorkerStatus>(m, "WorkerStatus", nb::is_arithmetic())
        .value("WORKING", WorkerStatus::working)
        .value("FINISHED", WorkerStatus::finished)
        .value("LEAVE", WorkerStatus::leave)
        .value("DIVERGED", WorkerStatus::diverged);
    nb::class_<Worker>(m, "Worker")
        .def(nb::init<Arena &, u32>(), nb::arg("arena"), nb::arg("worker"), nb::keep_alive<1, 2>())
        .def_prop_ro("round", &Worker::round_number, "Round that is begun.")
        .def_prop_ro("state_address", [](Worker &worker) { return address_of(worker.round().memory().state); })
        .def_prop_ro("share_address", [](Worker &worker) { return address_of(worker.round().memory().share); })
        .def_prop_ro("base_address", [](Worker &worker) { return address_of(worker.round().memory().base); })
        .def("follow",
             [](Worker &worker, nb::typed<nb::callable, f32(i64, f64)> rate_of) {
                 worker.round().follow([rate_of = std::move(rate_of)](i64 steps, f64 left) {
                     WithGil held;
                     return nb::cast<f32>(rate_of(steps, left));
                 });
             },
             nb::arg("rate_of"))
        .def("score_means",
             [](Worker &worker, Plan &plan, Address state, Address base, Address share) {
                 worker.score_means({plan, {0, reinterpret_cast<u8 *>(state), reinterpret_cast<u8 *>(base),
                                            reinterpret_cast<u8 *>(share)}});
             },
             nb::arg("plan"), nb::arg("state"), nb::arg("base"), nb::arg("share"), nb::keep_alive<1, 2>())
        .def("run_closed_round", &Worker::run_closed_round, nb::arg("plan"), nb::call_guard<WithoutGil>())
        .def("run",
             [](Worker &worker, Plan &plan, f64 timeout_s) {
                 WithoutGil release;
                 return worker.run(plan, deadline_ns(timeout_s));
             },
             nb::arg("plan"), nb::arg("timeout_s"));
}

void bind_contribution_fold(nb::module_ &m) {
    nb::class_<ContributionFold>(m, "ContributionFold",
                                 "Folds contributions into an arena's newest mean, as its next round.")
        .def(nb::init<Arena &>(), nb::arg("arena"), nb::keep_alive<1, 2>())
        .def("fold",
             [](ContributionFold &fold, const std::vector<std::tuple<Address, f64>> &contributions) {
                 std::vector<Contribution> each;
                 for (auto [state, weight] : contributions)
                     each.push_back({reinterpret_cast<const u8 *>(state), weight});
                 WithoutGil release;
                 return fold.fold(std::move(each));
             },
             nb::arg("contributions"),
             "Takes the address of each joined state, and its weight sum. Returns whether a window closed.");
}

void bind_log(nb::module_ &m) {
    nb::class_<LogSource>(m, "LogSource",
                          "The records that ranges of a round log touch.\n\n"
                          "`open` gives the source of a partition from an offset on.")
        .def(nb::init<LogSource::Open>(), nb::arg("open"));
    nb::enum_<LogStatus>(m, "LogStatus", nb::is_arithmetic())
        .value("FILLED", LogStatus::filled)
        .value("LACKING", LogStatus::lacking, "A partition holds fewer records than the range says.")
        .value("SILENT", LogStatus::silent);
    nb::class_<LogFiller>(m, "LogFiller", "Slots with the rows that a log gives them.")
        .def(
            "__init__",
            [](LogFiller *self, Arena &arena, LogSource &source, f64 silence_s, FormatName format,
               std::shared_ptr<DecodePlan> plan) {
                BatchFiller batch(format_of(format), std::move(plan));
                new (self) LogFiller(arena, source, static_cast<i64>(silence_s * 1e9), std::move(batch));
            },
            nb::arg("arena"), nb::arg("source"), nb::arg("silence_s"), nb::arg("format"), nb::arg("plan"),
            nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
        .def(
            "fill",
            [](LogFiller &filler, i64 slot, const nb::bytes &ranges) {
                std::vector<Range> own(ranges.size() / sizeof(Range));   // aligned
                std::memcpy(own.data(), ranges.data(), own.size() * sizeof(Range));
                WithoutGil release;
                const LogFilled filled = filler.fill(slot, own);
                return std::tuple(filled.status, filled.rows, filled.range);
            },
            nb::arg("slot"), nb::arg("ranges"),
            "Returns the ending, the slot's rows, and the number of the range that was not filled.");
}

void bind_log_structs(nb::module_ &m) {
    {
        using Struct = RoundRecord;
        m.attr("ROUND_RECORD") = struct_layout(
            {ST_FIELD(round), ST_FIELD(first_slot), ST_FIELD(slots), ST_FIELD(workers), ST_FIELD(closed_by),
             ST_FIELD(statistics_pass), ST_FIELD(closed_window), ST_FIELD(reserved), ST_FIELD(newest_event_ms)},
            sizeof(Struct));
    }
    {
        using Struct = SlotRecord;
        m.attr("SLOT_RECORD") = struct_layout(
            {ST_FIELD(slot), ST_FIELD(rows), ST_FIELD(trained), ST_FIELD(dead), ST_FIELD(filtered),
             ST_FIELD(tombstones), ST_FIELD(range_count), ST_FIELD(loss_sum), ST_FIELD(weight_sum), ST_FIELD(rejected),
             ST_FIELD(reserved)}, sizeof(Struct));
    }
}

}  // namespace

void bind_train(nb::module_ &m) {
    bind_log_structs(m);
    bind_worker(m);
    bind_contribution_fold(m);
    bind_log(m);
    nb::class_<RoundLogThread>(m, "RoundLogThread")
        .def(nb::init<CoordinatorEnd &>(), nb::arg("end"), nb::keep_alive<1, 2>())
        .def("start", &RoundLogThread::start)
        .def("waiting_bytes", &RoundLogThread::waiting_bytes)
        .def("take", [](RoundLogThread &thread) {
            i64 last_round = -1;
            GatheredLog log = thread.take(last_round);
            return std::tuple(last_round, log.newest_timestamp_ms, bytes_of_vector(log.rounds),
                              bytes_of_vector(log.slots), bytes_of_vector(log.ranges));
        }, "Returns (last round, newest timestamp in ms, rounds, slots, ranges).");
}

}  // namespace st
