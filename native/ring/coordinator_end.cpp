#include "ring/coordinator_end.h"

namespace st {

void CoordinatorEnd::begin(const RunStart &start) {
    if (start.joins) check_joins(arena_.state_layout());
    AveragerWords &averager = control().averager;   // nobody averages before READY
    for (auto &buffer : averager.mean_buffer) buffer.store(0);
    for (i64 &slot : averager.next_first_slot) slot = 0;
    for (auto &judged : averager.judged) judged = {};
    for (u32 w = 0; w < arena_.workers(); ++w) control().workers[w].published_round.store(start.round);
    for (u32 slot = 0; slot < arena_.slot_count(); ++slot) arena_.slot_result(slot) = {.slot = -1};
    averager.finished_round.store(start.round);
    control().ingest.final_round.store(start.round);
    words().rows_seen.store(start.rows_seen);
    words().learning_rate.store(start.learning_rate);
    words().seed.store(start.seed);
    words().row_bound.store(start.row_bound);
    words().joins.store(start.joins);
    words().start_in_place.store(start.round);   // begin_round() lets the first begin
    words().round_shift.store(0);
    arena_.set_positions(start.positions);
}

std::pair<i32, i64> CoordinatorEnd::pin_newest() {
    for (;;) {
        const i64 round = finished_round();
        const i32 buffer = control().averager.mean_of(round);
        words().pinned.store(buffer);
        if (finished_round() == round) return {buffer, round};
    }
}

bool CoordinatorEnd::wait_publication(i64 due_ns, i64 deadline_ns) const {
    const IngestWords &ingest = control().ingest;
    auto closed = [&] {
        return ingest.due_answered_ns.load() == due_ns || ingest.rounds_opened.load() == ingest.rounds_closed.load();
    };
    if (!control().ingest_event.wait(deadline_ns, closed)) return false;
    return wait_round(ingest.rounds_closed.load() - 1, deadline_ns);
}

}  // namespace st
