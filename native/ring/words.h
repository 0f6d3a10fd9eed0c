// The words processes share in the arena, grouped by the one process that writes them; layouts frozen by static_assert.
// All are lock-free atomics; a 64-bit word is stored before the event that announces it is rung. They are written
// through the end of the process that owns them (supervisor_end.h, coordinator_end.h, ingest_end.h, worker_end.h) and
// by nobody else.
#pragma once
#include <atomic>

#include "base/limits.h"
#include "base/types.h"
#include "ring/futex.h"

namespace st {

constexpr int ROUNDS_REMEMBERED = 4;   // the results of so many newest rounds, each at [round % this]
constexpr int MEAN_BUFFERS = 3;        // start, mean, pinned
constexpr i64 WINDOW_ROWS = 10'000;    // a window closes at the first round's end at or after so many scored rows ...
constexpr u64 WINDOWS = 64;            // ... while fewer wait for the coordinator

enum class Stop : u32 { run = 0, drain = 1, leave = 2 };
enum class IngestPhase : u32 { starting = 0, reading = 1, ended = 2 };
// Why a round ended, as the round log holds it: its slots are full (or its letters many), an interval has passed, a
// stop, the end of a bounded range or of --max-rows, a publication was due.
enum class CloseReason : u32 { full = 0, interval = 1, drained = 2, end = 3, publication = 4 };

// Written by the supervisor alone, but for `averager`: claimed by a worker (compare and swap from 0), cleared by the
// claimant when done or by the supervisor when the claimant is dead.
struct alignas(64) SupervisorWords {
    std::atomic<Stop> stop;
    std::atomic<u32> averager;         // worker + 1
    std::atomic<u32> worker_deaths;    // healed in this run
    u32 reserved[13];
};

// Written by the coordinator alone.
struct alignas(64) CoordinatorWords {
    std::atomic<i64> heartbeat_ns;     // monotonic; 0 before the first beat
    std::atomic<i64> slots_released;   // slots below this number may be filled again
    std::atomic<i64> dead_letter_bytes_published;   // of the dead letter ring, which may be written again
    std::atomic<u32> ready;            // parameters and positions are in place
    std::atomic<u32> hold;             // ingest opens no round: too much is unpublished
    std::atomic<i32> pinned;           // mean buffer being published, -1 none
    std::atomic<f32> learning_rate;
    std::atomic<i64> row_bound;        // rows ingest may decode this run, -1 without a bound
    std::atomic<i64> dead_letters_published;        // entries of that ring
    std::atomic<i64> publication_due_ns;   // monotonic: the round open from then on closes, once; 0: none does
    std::atomic<i64> rows_seen;        // rows the lineage had trained when the run began
    std::atomic<u64> seed;             // of the lineage's random numbers
    std::atomic<i64> round_bound;      // ingest opens no round from this number on; 0: any
    std::atomic<i64> windows_allowed;  // windows below this number may close: there is room for them
    std::atomic<i64> start_in_place;   // where `joins`: workers begin no round after this one
    std::atomic<i64> round_shift;      // where `joins`: a round's number in the lineage, less that in the arena
    std::atomic<u32> joins;            // a round's vectors are joined, for a fold elsewhere; its result is no mean
    u32 reserved[3];
};
static_assert(sizeof(CoordinatorWords) == 128);

// Written by ingest alone.
struct alignas(64) IngestWords {
    std::atomic<i64> slots_filled;     // slots below this number are full and fixed
    std::atomic<i64> rounds_opened, rounds_closed;   // rounds below this number have a RoundEntry, a slot count
    std::atomic<i64> final_round;      // the last round, once phase is ended; may be the one before the first
    std::atomic<i64> dead_letter_bytes_written, dead_letters_written;
    std::atomic<IngestPhase> phase;
    std::atomic<u32> held;             // of its threads: so many wait for a publication, as too much is unpublished
    std::atomic<i64> rows, records, bytes;   // decoded this run
    std::atomic<i64> due_answered_ns;  // the newest publication_due_ns for which a round was closed in time
    std::atomic<u32> waiting_for_schema;   // of its threads: the next record of so many needs one that is not known yet
    u32 reserved[9];
};
static_assert(sizeof(IngestWords) == 128);

// Written by worker w alone, before READY by the coordinator; the supervisor reads it when the worker has died.
struct alignas(64) WorkerWords {
    std::atomic<i64> round;            // begun
    std::atomic<i64> published_round;  // the newest whose vector is fixed: one word, so that no moment shows another
    std::atomic<i64> slot;             // slot in hand, -1 none
    f64 weight_sum;                    // of the round, fixed before it is published
    u64 reserved[4];
};
static_assert(sizeof(WorkerWords) == 64);

// Written by the claimant of the averager word.
struct alignas(64) AveragerWords {
    std::atomic<i64> finished_round;   // results of all rounds up to this one are in place
    std::atomic<i32> mean_buffer[ROUNDS_REMEMBERED];   // holding the round's result
    i64 next_first_slot[ROUNDS_REMEMBERED];   // first slot of the round after it
    f64 score_loss_sum, score_weight_sum;   // of the newest mean on its round's last slot, where that is asked for
    // Since the last judgement whether the model diverges, as of each round: a round whose averager has died is judged
    // again from the round before.
    struct Judged { u32 slots, rejected; } judged[ROUNDS_REMEMBERED];
    u64 reserved[3];

    static u64 place(i64 round) { return static_cast<u64>(round + ROUNDS_REMEMBERED) % ROUNDS_REMEMBERED; }   // from -1
    i32 mean_of(i64 round) const { return mean_buffer[place(round)].load(); }   // buffer
};
static_assert(sizeof(AveragerWords) == 128);

struct Control {
    SupervisorWords supervisor;
    CoordinatorWords coordinator;
    IngestWords ingest;
    AveragerWords averager;
    Event coordinator_event;           // ready, slots_released, hold, dead letters published
    Event ingest_event;                // slots_filled, a round's slot count, phase
    Event worker_event;                // phase published, finished_round, averager
    WorkerWords workers[MAX_WORKERS];
};
static_assert(sizeof(Control) == 64 + 128 + 128 + 128 + 3 * 64 + MAX_WORKERS * 64);

// One per round in flight, at [round % entries]; ingest writes it, the slot count once, when the round closes, and the
// averager `closed_window`.
struct RoundEntry {
    std::atomic<i64> round;
    i64 first_slot;
    std::atomic<i64> slot_count;       // -1 while open
    CloseReason close_reason;
    u32 closed_window;                 // 1: the window that was open closed with it
    u32 reserved[8];
};
static_assert(sizeof(RoundEntry) == 64);

enum class Rejected : u32 { no = 0, not_finite = 1, crashed = 2 };

// One per slot of the ring, at [slot % slots]; its worker writes it (`crashed`: the supervisor, while that worker is
// dead).
struct SlotResult {
    i64 slot;
    f64 loss_sum, weight_sum;
    Rejected rejected;
    u32 worker;
    u64 reserved[4];
};
static_assert(sizeof(SlotResult) == 64);

}  // namespace st
