#include "ring/worker_end.h"

#include "base/failpoint.h"

namespace st {

WorkerEnd::Coming WorkerEnd::wait_slot(i64 round, i64 in_round, i64 slot, i64 wake_ns) const {
    auto filled = [&] { return control().ingest.slots_filled.load() > slot; };
    auto none_left = [&] {
        const i64 count = slots_of(round);
        return count >= 0 && count <= in_round;
    };
    if (!control().ingest_event.wait(wake_ns, [&] { return none_left() || filled(); })) return Coming::not_yet;
    return none_left() ? Coming::none_left : Coming::filled;
}

void WorkerEnd::trained(i64 slot, f64 loss_sum, f64 weight_sum) {
    arena_.slot_result(slot) = {.slot = slot, .loss_sum = loss_sum, .weight_sum = weight_sum, .worker = worker_};
}

void WorkerEnd::reject(i64 slot) {
    arena_.slot_result(slot) = {.slot = slot, .rejected = Rejected::not_finite, .worker = worker_};
}

void WorkerEnd::publish(f64 weight_sum) {
    WorkerWords &words = own();
    ST_FAILPOINT("worker.before_publish");
    words.slot.store(-1);
    words.weight_sum = weight_sum;
    words.published_round.store(words.round.load());
    control().worker_event.ring();
    ST_FAILPOINT("worker.published");
}

bool WorkerEnd::all_published() const {
    const i64 round = open_round();
    for (u32 w = 0; w < arena_.workers(); ++w) {
        if (control().workers[w].published_round.load() != round) return false;
    }
    return true;
}

i32 WorkerEnd::free_buffer(i64 round) const {
    const i32 start = control().averager.mean_of(round - 1), pinned = control().coordinator.pinned.load();
    i32 buffer = 0;
    while (buffer == start || buffer == pinned) ++buffer;
    return buffer;
}

void WorkerEnd::finish(i64 round, i32 buffer, i64 next_first_slot) {
    AveragerWords &averager = control().averager;
    averager.next_first_slot[AveragerWords::place(round)] = next_first_slot;
    averager.mean_buffer[AveragerWords::place(round)].store(buffer);
    ST_FAILPOINT("worker.before_finished");
    averager.finished_round.store(round);
    ST_FAILPOINT("worker.after_finished");
    give_back();
    control().worker_event.ring();
}

}  // namespace st
