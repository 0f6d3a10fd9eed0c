// A worker's rounds, the thread that copies their log, the average.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/addresses.h"
#include "bindings/bindings.h"
#include "state/average.h"
#include "train/round_log.h"
#include "train/worker.h"

namespace st {

namespace {

void bind_worker(nb::module_ &m) {
    nb::enum_<WorkerStatus>(m, "WorkerStatus", nb::is_arithmetic())
        .value("WORKING", WorkerStatus::working)
        .value("FINISHED", WorkerStatus::finished)
        .value("LEAVE", WorkerStatus::leave)
        .value("DIVERGED", WorkerStatus::diverged);
    nb::class_<Worker>(m, "Worker")
        .def(nb::init<Arena &, u32, f64, f64>(), nb::arg("arena"), nb::arg("worker"), nb::arg("beta1"),
             nb::arg("beta2"), nb::keep_alive<1, 2>())
        .def_prop_ro("state_address", [](Worker &worker) { return address_of(worker.round().state()); })
        .def_prop_ro("share_address", [](Worker &worker) { return address_of(worker.round().share()); })
        .def_prop_ro("base_address", [](Worker &worker) { return address_of(worker.round().base()); })
        .def("begin", [](Worker &worker) { worker.round().begin(); })
        .def("score_means",
             [](Worker &worker, Plan &plan, Address state, Address base, Address share) {
                 worker.score_means({plan, reinterpret_cast<u8 *>(state), reinterpret_cast<u8 *>(base),
                                     reinterpret_cast<u8 *>(share)});
             },
             nb::arg("plan"), nb::arg("state"), nb::arg("base"), nb::arg("share"), nb::keep_alive<1, 2>())
        .def("run_closed_round", &Worker::run_closed_round, nb::arg("plan"), nb::call_guard<nb::gil_scoped_release>())
        .def("run",
             [](Worker &worker, Plan &plan, f64 timeout_s) {
                 nb::gil_scoped_release release;
                 return worker.run(plan, deadline_ns(timeout_s));
             },
             nb::arg("plan"), nb::arg("timeout_s"));
}

void average_vectors(const StateLayout &layout, Address start, const std::vector<std::tuple<Address, f64>> &workers,
                     Address mean) {
    std::vector<Contribution> contributions;
    for (auto [vector, weight_sum] : workers)
        contributions.push_back({reinterpret_cast<const u8 *>(vector), weight_sum});
    nb::gil_scoped_release release;
    average(layout, reinterpret_cast<const u8 *>(start), contributions, nullptr, reinterpret_cast<u8 *>(mean));
}

}  // namespace

void bind_train(nb::module_ &m) {
    bind_worker(m);
    nb::class_<RoundLogThread>(m, "RoundLogThread")
        .def(nb::init<CoordinatorEnd &>(), nb::arg("end"), nb::keep_alive<1, 2>())
        .def("start", &RoundLogThread::start)
        .def("waiting_bytes", &RoundLogThread::waiting_bytes)
        .def("take", [](RoundLogThread &thread) {
            i64 last_round = -1;
            GatheredLog log = thread.take(last_round);
            return nb::make_tuple(last_round, log.newest_timestamp_ms, bytes_of_vector(log.rounds),
                                  bytes_of_vector(log.slots), bytes_of_vector(log.ranges));
        });
    m.def("average", &average_vectors, nb::arg("layout"), nb::arg("start"), nb::arg("workers"), nb::arg("mean"));
}

}  // namespace st
