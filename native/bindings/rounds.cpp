#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"
#include "train/round_log.h"
#include "train/rounds.h"
#include "ring/dead_letter_ring.h"

namespace st {

namespace {

using Address = std::uintptr_t;

Address address_of(const void *pointer) { return reinterpret_cast<Address>(pointer); }

template <class T>
nb::bytes bytes_of_vector(const std::vector<T> &items) {
    return nb::bytes(reinterpret_cast<const char *>(items.data()), items.size() * sizeof(T));
}

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

nb::dict progress_of(const Arena &arena) {
    const Control &control = arena.control();
    nb::dict progress;
    progress["finished_round"] = control.averager.finished_round.load();
    progress["final_round"] = control.ingest.final_round.load();
    progress["ingest_ended"] = control.ingest.phase.load() == static_cast<u32>(IngestPhase::ended);
    progress["slots_filled"] = control.ingest.slots_filled.load();
    progress["slots_released"] = control.coordinator.slots_released.load();
    progress["rows"] = control.ingest.rows.load();
    progress["records"] = control.ingest.records.load();
    progress["bytes"] = control.ingest.bytes.load();
    progress["held"] = control.ingest.held.load() != 0;
    progress["waiting_for_ring"] = control.ingest.waiting_for_ring.load() != 0;
    progress["score_loss_sum"] = control.averager.score_loss_sum;
    progress["score_weight_sum"] = control.averager.score_weight_sum;
    progress["worker_deaths"] = control.supervisor.worker_deaths.load();
    progress["heartbeat_ns"] = control.coordinator.heartbeat_ns.load();
    return progress;
}

// The coordinator's first words: the state a run starts from becomes the result of `round`.
void set_start(Arena &arena, i64 round, u64 seed, f32 learning_rate, i64 rows_seen) {
    Control &control = arena.control();
    for (auto &buffer : control.averager.mean_buffer) buffer.store(0);
    for (i64 &slot : control.averager.next_first_slot) slot = 0;
    control.averager.finished_round.store(round);
    control.ingest.final_round.store(round);
    control.coordinator.rows_seen.store(rows_seen);
    control.coordinator.seed.store(seed);
    control.coordinator.learning_rate.store(learning_rate);
}

// Pins the newest mean and returns (its buffer, its round); the averagers leave a pinned buffer alone until the next
// pin.
std::tuple<i32, i64> pin_newest(Arena &arena) {
    Control &control = arena.control();
    for (;;) {
        i64 round = control.averager.finished_round.load();
        i32 buffer = control.averager.mean_buffer[(round + ANY_ROUNDS) % ANY_ROUNDS].load();
        control.coordinator.pinned.store(buffer);
        if (control.averager.finished_round.load() == round) return {buffer, round};
    }
}

// Whether, within the time-out, the round that a publication wanted at `due_ns` is closed, or none is open, and every
// closed one is averaged.
bool wait_publication(Arena &arena, i64 due_ns, f64 timeout_s) {
    Control &control = arena.control();
    const IngestWords &ingest = control.ingest;
    const i64 deadline_ns = monotonic_ns() + static_cast<i64>(timeout_s * 1e9);
    auto closed = [&] {
        return ingest.due_answered_ns.load() == due_ns || ingest.rounds_opened.load() == ingest.rounds_closed.load();
    };
    if (!control.ingest_event.wait(deadline_ns, closed)) return false;
    const i64 last = ingest.rounds_closed.load() - 1;
    return control.worker_event.wait(deadline_ns, [&] { return control.averager.finished_round.load() >= last; });
}

void bind_arena(nb::module_ &m) {
    nb::class_<Arena>(m, "Arena")
        .def_static("create", &create_arena, nb::arg("workers"), nb::arg("averaging_frequency"), nb::arg("slot_count"),
                    nb::arg("slot_layout"), nb::arg("state_layout"), nb::arg("dead_letter_bytes") = u64{16} << 20)
        .def_static("attach", &Arena::attach, nb::arg("descriptor"))
        .def_prop_ro("descriptor", &Arena::descriptor)
        .def_prop_ro("bytes", &Arena::bytes)
        .def_prop_ro("address", [](const Arena &a) { return address_of(a.base()); })
        .def_prop_ro("workers", &Arena::workers)
        .def_prop_ro("slot_count", &Arena::slot_count)
        .def_prop_ro("slot_layout", [](const Arena &a) { return a.slot_layout(); })
        .def_prop_ro("state_layout", [](const Arena &a) { return a.state_layout(); })
        .def_prop_ro("mean_bytes", &Arena::mean_bytes)
        .def("mean_address", [](const Arena &a, i32 buffer) { return address_of(a.mean(buffer)); })
        .def("slot_address", [](const Arena &a, i64 slot) { return address_of(a.slot(slot)); })
        .def("progress", &progress_of)
        .def("set_positions",
             [](Arena &a, const std::vector<std::tuple<i32, i64, i32>> &positions) {
                 std::vector<StartPosition> starts;
                 for (auto [partition, offset, row] : positions) starts.push_back({offset, row, partition});
                 a.set_positions(starts);
             })
        .def("positions",
             [](const Arena &a) {
                 std::vector<std::tuple<i32, i64, i32>> positions;
                 for (const StartPosition &p : a.positions()) positions.emplace_back(p.partition, p.offset, p.row);
                 return positions;
             })
        .def("set_row_bound", [](Arena &a, i64 rows) { a.control().coordinator.row_bound.store(rows); })
        .def("set_start", &set_start, nb::arg("round"), nb::arg("seed"), nb::arg("learning_rate"),
             nb::arg("rows_seen") = 0)
        .def("set_ready",
             [](Arena &a) {
                 a.control().coordinator.ready.store(1);
                 a.control().coordinator_event.ring();
             })
        .def("wait_ready",
             [](Arena &a, f64 timeout_s) {
                 nb::gil_scoped_release release;
                 Control &control = a.control();
                 i64 deadline_ns = monotonic_ns() + static_cast<i64>(timeout_s * 1e9);
                 return control.coordinator_event.wait(deadline_ns,
                                                       [&] { return control.coordinator.ready.load() != 0; });
             })
        .def(
            "fill_round",   // replay: slots first_slot.. hold rows[i] rows, and no more come if the round is closed
            [](Arena &a, i64 round, i64 first_slot, const std::vector<u32> &rows, bool closed) {
                for (u64 i = 0; i < rows.size(); ++i) {
                    SlotHeader &header = a.slot_header(first_slot + static_cast<i64>(i));
                    header = SlotHeader{};
                    header.number = first_slot + static_cast<i64>(i);
                    header.round = round;
                    header.rows = rows[i];
                }
                RoundEntry &entry = a.round_entry(round);
                entry.first_slot = first_slot;
                entry.slot_count.store(closed ? static_cast<i64>(rows.size()) : -1);
                entry.round.store(round);
                a.control().ingest.slots_filled.store(first_slot + static_cast<i64>(rows.size()));
            },
            nb::arg("round"), nb::arg("first_slot"), nb::arg("rows"), nb::arg("closed") = true)
        .def("beat", [](Arena &a) { a.control().coordinator.heartbeat_ns.store(monotonic_ns()); })
        .def("set_hold",
             [](Arena &a, bool hold) {
                 a.control().coordinator.hold.store(hold);
                 a.control().coordinator_event.ring();
             })
        .def(
            "dead_letters",   // (the unpublished entries of the rounds up to `last_round`, their number)
            [](const Arena &a, i64 last_round) {
                i64 entries = 0;
                std::vector<u8> bytes = DeadLetterReader(a).up_to(last_round, entries);
                return std::tuple(bytes_of_vector(bytes), entries);
            },
            nb::arg("last_round"))
        .def(
            "release_dead_letters",
            [](Arena &a, i64 bytes, i64 entries) { DeadLetterReader(a).release(bytes, entries); },
            nb::arg("bytes"), nb::arg("entries"))
        .def_prop_ro("dead_letter_bytes_waiting",
                     [](const Arena &a) {
                         const Control &control = a.control();
                         return control.ingest.dead_letter_bytes_written.load() -
                                control.coordinator.dead_letter_bytes_published.load();
                     })
        .def("pin_newest", &pin_newest)
        .def("unpin", [](Arena &a) { a.control().coordinator.pinned.store(-1); })
        .def("wait_round",
             [](Arena &a, i64 round, f64 timeout_s) {
                 nb::gil_scoped_release release;
                 Control &control = a.control();
                 i64 deadline_ns = monotonic_ns() + static_cast<i64>(timeout_s * 1e9);
                 return control.worker_event.wait(deadline_ns,
                                                  [&] { return control.averager.finished_round.load() >= round; });
             })
        .def("set_publication_due",
             [](Arena &a, i64 due_ns) { a.control().coordinator.publication_due_ns.store(due_ns); }, nb::arg("due_ns"))
        .def("wait_publication", &wait_publication, nb::arg("due_ns"), nb::arg("timeout_s"),
             nb::call_guard<nb::gil_scoped_release>())
        .def("stop_word", [](const Arena &a) { return a.control().supervisor.stop.load(); })
        .def("set_stop",
             [](Arena &a, u32 stop) {
                 Control &control = a.control();
                 control.supervisor.stop.store(stop);
                 control.ingest_event.ring();
                 control.coordinator_event.ring();
                 control.worker_event.ring();
             })
        .def("worker_state",
             [](const Arena &a, u32 worker) {
                 const WorkerWords &words = a.control().workers[worker];
                 return std::tuple(words.round.load(), words.slot.load(), words.phase.load(), words.rows.load());
             })
        .def("clear_dead_worker",   // by the supervisor, once it has waited for the dead process
             [](Arena &a, u32 worker) {
                 Control &control = a.control();
                 u32 claim = worker + 1;
                 control.supervisor.averager.compare_exchange_strong(claim, 0);
                 control.supervisor.worker_deaths.fetch_add(1);
                 control.workers[worker].slot.store(-1);
                 control.worker_event.ring();
             })
        .def("slot_result",
             [](const Arena &a, i64 slot) {
                 const SlotResult &result = a.slot_result(slot);
                 return std::tuple(result.loss_sum, result.weight_sum, result.rejected);
             })
        .def("reject_slot", [](Arena &a, i64 slot, u32 worker) {   // by the supervisor, while the slot's worker is dead
            SlotResult &result = a.slot_result(slot);
            result = SlotResult{};
            result.slot = slot;
            result.worker = worker;
            result.rejected = static_cast<u32>(Rejected::crashed);
        });
}

}  // namespace

void bind_rounds(nb::module_ &m) {
    bind_arena(m);
    nb::class_<Silence>(m, "Silence")
        .def(nb::init<>())
        .def("lasts", nb::overload_cast<i64, i64>(&Silence::lasts), nb::arg("beat_ns"), nb::arg("now_ns"));
    nb::class_<WorkerRounds>(m, "WorkerRounds")
        .def(nb::init<Arena &, u32, f64, f64>(), nb::arg("arena"), nb::arg("worker"), nb::arg("beta1"),
             nb::arg("beta2"), nb::keep_alive<1, 2>())
        .def_prop_ro("state_address", [](WorkerRounds &r) { return address_of(r.memory().state); })
        .def_prop_ro("share_address", [](WorkerRounds &r) { return address_of(r.memory().share); })
        .def_prop_ro("base_address", [](WorkerRounds &r) { return address_of(r.memory().base); })
        .def("begin", &WorkerRounds::begin)
        .def("score_means",
             [](WorkerRounds &r, Plan &plan, Address state, Address base, Address share) {
                 r.score_means(plan, {0, reinterpret_cast<u8 *>(state), reinterpret_cast<u8 *>(base),
                                      reinterpret_cast<u8 *>(share)});
             },
             nb::arg("plan"), nb::arg("state"), nb::arg("base"), nb::arg("share"), nb::keep_alive<1, 2>())
        .def("run_closed_round", &WorkerRounds::run_closed_round, nb::arg("plan"),
             nb::call_guard<nb::gil_scoped_release>())
        .def("run", [](WorkerRounds &r, Plan &plan, f64 timeout_s) {
            nb::gil_scoped_release release;
            return static_cast<u32>(r.run(plan, monotonic_ns() + static_cast<i64>(timeout_s * 1e9)));
        }, nb::arg("plan"), nb::arg("timeout_s"));
    nb::class_<RoundLogThread>(m, "RoundLogThread")
        .def(nb::init<Arena &>(), nb::keep_alive<1, 2>())
        .def("start", &RoundLogThread::start)
        .def("waiting_bytes", &RoundLogThread::waiting_bytes)
        .def("take", [](RoundLogThread &thread) {
            i64 last_round = -1;
            GatheredLog log = thread.take(last_round);
            return nb::make_tuple(last_round, log.newest_timestamp_ms, bytes_of_vector(log.rounds),
                                  bytes_of_vector(log.slots), bytes_of_vector(log.ranges));
        });
}

}  // namespace st
