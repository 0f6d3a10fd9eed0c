// How far a run is, for those who show it or decide by it; any process may look.
#pragma once
#include "ring/arena.h"

namespace st {

struct Progress {
    i64 finished_round, final_round;
    bool ingest_ended;
    i64 slots_filled, slots_released;
    i64 rounds_closed;                        // by ingest: the number of the next one
    i64 rows, records, bytes;                 // decoded this run
    // ingest waits for a publication, for a free slot, for a schema
    bool held, waiting_for_schema;
    f64 score_loss_sum, score_weight_sum;     // of the newest mean on its round's last slot
    u32 worker_deaths;
};

inline Progress progress_of(const Arena &arena) {
    const Control &control = arena.control();
    const IngestWords &ingest = control.ingest;
    return {
        .finished_round = control.averager.finished_round.load(),
        .final_round = ingest.final_round.load(),
        .ingest_ended = ingest.phase.load() == IngestPhase::ended,
        .slots_filled = ingest.slots_filled.load(),
        .slots_released = control.coordinator.slots_released.load(),
        .rounds_closed = ingest.rounds_closed.load(),
        .rows = ingest.rows.load(),
        .records = ingest.records.load(),
        .bytes = ingest.bytes.load(),
        .held = ingest.held.load() != 0,
        .waiting_for_schema = ingest.waiting_for_schema.load() != 0,
        .score_loss_sum = control.averager.score_loss_sum,
        .score_weight_sum = control.averager.score_weight_sum,
        .worker_deaths = control.supervisor.worker_deaths.load(),
    };
}

}  // namespace st
