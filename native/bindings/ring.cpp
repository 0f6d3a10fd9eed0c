// The arena and the ends of its ring, one for each role.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/addresses.h"
#include "bindings/bindings.h"
#include "ring/coordinator_end.h"
#include "ring/heartbeat.h"
#include "ring/ingest_end.h"
#include "ring/progress.h"
#include "ring/supervisor_end.h"

namespace st {

namespace {

using Position = std::tuple<i32, i64, i32>;   // partition, offset, row

Arena create_arena(u32 workers, u32 averaging_frequency, u32 slot_count, const SlotLayout &slot,
                   const StateLayout &state, u64 dead_letter_bytes) {
    ArenaSpec spec;
    spec.workers = workers;
    spec.averaging_frequency = averaging_frequency;
    spec.slot_count = slot_count;
    spec.slot = slot;
    spec.state = state;
    spec.dead_letter_bytes = dead_letter_bytes;
    return Arena::create(spec);
}

// Those of scores are floats.
nb::typed<nb::dict, nb::str, i64> progress_dict(const Arena &arena) {
    const Progress progress = progress_of(arena);
    nb::dict dict;
    dict["finished_round"] = progress.finished_round;
    dict["final_round"] = progress.final_round;
    dict["ingest_ended"] = progress.ingest_ended;
    dict["slots_filled"] = progress.slots_filled;
    dict["slots_released"] = progress.slots_released;
    dict["rounds_closed"] = progress.rounds_closed;
    dict["rows"] = progress.rows;
    dict["records"] = progress.records;
    dict["bytes"] = progress.bytes;
    dict["held"] = progress.held;
    dict["waiting_for_schema"] = progress.waiting_for_schema;
    dict["score_loss_sum"] = progress.score_loss_sum;
    dict["score_weight_sum"] = progress.score_weight_sum;
    dict["worker_deaths"] = progress.worker_deaths;
    return dict;
}

void bind_enums(nb::module_ &m) {
    nb::enum_<Stop>(m, "Stop", nb::is_arithmetic())
        .value("RUN", Stop::run).value("DRAIN", Stop::drain).value("LEAVE", Stop::leave);
    nb::enum_<CloseReason>(m, "CloseReason", nb::is_arithmetic())
        .value("FULL", CloseReason::full)
        .value("INTERVAL", CloseReason::interval)
        .value("DRAINED", CloseReason::drained)
        .value("END", CloseReason::end)
        .value("PUBLICATION", CloseReason::publication);
    nb::enum_<Rejected>(m, "Rejected", nb::is_arithmetic())
        .value("NO", Rejected::no).value("NOT_FINITE", Rejected::not_finite).value("CRASHED", Rejected::crashed);
}

void bind_arena(nb::module_ &m) {
    nb::class_<Arena>(m, "Arena")
        .def_static("create", &create_arena, nb::arg("workers"), nb::arg("averaging_frequency"), nb::arg("slot_count"),
                    nb::arg("slot_layout"), nb::arg("state_layout"), nb::arg("dead_letter_bytes") = u64{16} << 20)
        .def_static("attach", &Arena::attach, nb::arg("descriptor"))
        .def_prop_ro("descriptor", &Arena::descriptor)
        .def_prop_ro("bytes", &Arena::bytes)
        .def_prop_ro("address", [](const Arena &arena) { return address_of(arena.base()); })
        .def_prop_ro("workers", &Arena::workers)
        .def_prop_ro("slot_count", &Arena::slot_count)
        .def_prop_ro("slot_layout", &Arena::slot_layout)
        .def_prop_ro("state_layout", &Arena::state_layout)
        .def("mean_address", [](const Arena &arena, i32 buffer) { return address_of(arena.mean(buffer)); },
             nb::arg("buffer"))
        .def("slot_address", [](const Arena &arena, i64 slot) { return address_of(arena.slot(slot)); },
             nb::arg("slot"))
        .def("slot_result",
             [](const Arena &arena, i64 slot) {
                 const SlotResult &result = arena.slot_result(slot);
                 return std::tuple(result.loss_sum, result.weight_sum, static_cast<u32>(result.rejected));
             },
             nb::arg("slot"), "Returns loss, weight, and a value of Rejected.")
        .def("progress", &progress_dict);
}

void bind_supervisor(nb::module_ &m) {
    nb::class_<WorkerLook>(m, "WorkerLook")
        .def_ro("round", &WorkerLook::round)
        .def_ro("slot", &WorkerLook::slot, "Slot in hand; -1: none.");
    nb::class_<SupervisorEnd>(m, "SupervisorEnd")
        .def(nb::init<Arena &>(), nb::arg("arena"), nb::keep_alive<1, 2>())
        .def("tell", &SupervisorEnd::tell, nb::arg("stop"))
        .def("worker", &SupervisorEnd::worker, nb::arg("worker"))
        .def("clear_dead", &SupervisorEnd::clear_dead, nb::arg("worker"),
             "Clears up behind a worker, once its process is dead and waited for.")
        .def("reject", &SupervisorEnd::reject, nb::arg("slot"), nb::arg("worker"),
             "Rejects a slot while its worker is dead.");
}

void begin_training(CoordinatorEnd &end, i64 round, f32 learning_rate, u64 seed, i64 rows_seen, i64 row_bound,
           const std::vector<Position> &positions, bool joins) {
    RunStart start{round, learning_rate, seed, rows_seen, row_bound, joins, {}};
    for (auto [partition, offset, row] : positions) start.positions.push_back({offset, row, partition});
    end.begin(start);
}

void bind_coordinator(nb::module_ &m) {
    nb::class_<CoordinatorEnd>(m, "CoordinatorEnd")
        .def(nb::init<Arena &>(), nb::arg("arena"), nb::keep_alive<1, 2>())
        .def("begin", &begin_training, nb::kw_only(), nb::arg("round"), nb::arg("learning_rate"), nb::arg("seed") = 0,
             nb::arg("rows_seen") = 0, nb::arg("row_bound") = -1, nb::arg("positions") = std::vector<Position>{},
             nb::arg("joins") = false,
             "Sets the state that the run continues from. `positions` are (partition, offset, row). `joins`: a round\n"
             "ends with its workers' joined contribution in the mean's place, not with a mean.")
        .def("start", &CoordinatorEnd::start, "Sends READY.")
        .def("progress", [](const CoordinatorEnd &end) { return progress_dict(end.arena()); })
        .def("mean_address", [](const CoordinatorEnd &end, i32 buffer) { return address_of(end.arena().mean(buffer)); },
             nb::arg("buffer"))
        .def("beat", &CoordinatorEnd::beat)
        .def("stop", &CoordinatorEnd::stop)
        .def("hold", &CoordinatorEnd::hold, nb::arg("held"), "Keeps ingest from opening a round.")
        .def("begin_round", &CoordinatorEnd::begin_round, nb::arg("round"), nb::arg("seed"),
             "Lets workers that join begin the next round, whose start is in place, as this round of the lineage.")
        .def("bound_rounds", &CoordinatorEnd::bound_rounds, nb::arg("bound"),
             "Keeps ingest from opening a round from this number on; 0: any may open.")
        .def("allow_windows", &CoordinatorEnd::allow_windows, nb::arg("below"),
             "Lets windows below this number close.")
        .def("window_address",
             [](const CoordinatorEnd &end, i64 number) { return address_of(end.arena().window(number)); },
             nb::arg("number"))
        .def("release_slots", &CoordinatorEnd::release_slots, nb::arg("below"))
        .def("pin_newest", &CoordinatorEnd::pin_newest, "Returns (buffer, round).")
        .def("unpin", &CoordinatorEnd::unpin)
        .def("wait_round",
             [](const CoordinatorEnd &end, i64 round, f64 timeout_s) {
                 WithoutGil release;
                 return end.wait_round(round, deadline_ns(timeout_s));
             },
             nb::arg("round"), nb::arg("timeout_s"))
        .def("publication_due", &CoordinatorEnd::publication_due, nb::arg("due_ns"),
             "Sets the time of a publication, monotonic; 0: no round is closed for one.")
        .def("wait_publication",
             [](const CoordinatorEnd &end, i64 due_ns, f64 timeout_s) {
                 WithoutGil release;
                 return end.wait_publication(due_ns, deadline_ns(timeout_s));
             },
             nb::arg("due_ns"), nb::arg("timeout_s"))
        .def("dead_letters",
             [](const CoordinatorEnd &end, i64 last_round) {
                 i64 entries = 0;
                 std::vector<u8> bytes = end.dead_letters(last_round, entries);
                 return std::pair(bytes_of_vector(bytes), entries);
             },
             nb::arg("last_round"), "Returns the entries that are not published, and their number.")
        .def("schemas",
             [](const CoordinatorEnd &end, i64 last_round) { return bytes_of_vector(end.schemas(last_round)); },
             nb::arg("last_round"), "Returns those of these entries that are schemas.")
        .def("release_dead_letters", &CoordinatorEnd::release_dead_letters, nb::arg("bytes"), nb::arg("entries"),
             "Releases entries that are published.")
        .def_prop_ro("dead_letter_bytes_waiting", &CoordinatorEnd::dead_letter_bytes_waiting,
                     "Bytes that wait for their publication.");
}

void bind_heartbeat(nb::module_ &m) {
    nb::class_<Heartbeat>(m, "Heartbeat",
                          "A thread that beats, from now to stop(), whatever holds this program's Python up.")
        .def(nb::init<CoordinatorEnd &>(), nb::arg("end"), nb::keep_alive<1, 2>())
        .def("stop", &Heartbeat::stop, nb::call_guard<WithoutGil>());
}

void bind_ingest_end(nb::module_ &m) {
    nb::class_<IngestEnd>(m, "IngestEnd")
        .def(nb::init<Arena &>(), nb::arg("arena"), nb::keep_alive<1, 2>())
        .def("wait_ready",
             [](const IngestEnd &end, f64 timeout_s) {
                 WithoutGil release;
                 return end.wait_ready(deadline_ns(timeout_s));
             },
             nb::arg("timeout_s"))
        .def("stop", &IngestEnd::stop)
        .def("fill_round", &IngestEnd::fill_round, nb::arg("round"), nb::arg("first_slot"), nb::arg("rows"),
             nb::arg("closed") = true,
             "Fills slots first_slot.. with rows[i] rows each; no more come if it is closed.");
}

}  // namespace

void bind_ring(nb::module_ &m) {
    m.attr("WINDOW_ROWS") = WINDOW_ROWS;
    m.attr("WINDOWS") = WINDOWS;
    bind_enums(m);
    bind_arena(m);
    bind_supervisor(m);
    bind_coordinator(m);
    bind_heartbeat(m);
    bind_ingest_end(m);
    nb::class_<Silence>(m, "Silence")
        .def(nb::init<>())
        .def("lasts", nb::overload_cast<i64, i64>(&Silence::lasts), nb::arg("beat_ns"), nb::arg("now_ns"));
}

}  // namespace st
