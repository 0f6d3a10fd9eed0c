// The coordinator's end of the ring: says where a run starts, beats, takes what is averaged, and frees what is copied.
#pragma once
#include <utility>
#include <vector>

#include "ring/dead_letter_ring.h"

namespace st {

// What the rounds of a run go on from.
struct RunStart {
    i64 round;             // the newest that is done, -1 before a lineage's first; mean buffer 0 holds its result
    f32 learning_rate;
    u64 seed = 0;          // of the lineage
    i64 rows_seen = 0;     // rows the lineage has trained
    i64 row_bound = -1;    // rows to decode in this run, -1 without a bound
    bool joins = false;    // a round's vectors are joined, not folded
    std::vector<StartPosition> positions;
};

class CoordinatorEnd {
  public:
    explicit CoordinatorEnd(Arena &arena) : arena_(arena) {}

    const Arena &arena() const { return arena_; }
    Stop stop() const { return control().supervisor.stop.load(); }
    void beat() { words().heartbeat_ns.store(monotonic_ns()); }

    // Before start(): the others look at nothing of this until READY. Also where none of them is at work on a round:
    // then slots count from 0 again, and nothing is left of the rounds before.
    void begin(const RunStart &start);
    void start() {
        beat();
        words().ready.store(1);
        ring();
    }

    // Ingest opens no round while it is held.
    void hold(bool held) {
        words().hold.store(held);
        ring();
    }
    // Windows below this number may close, as what they end with was taken.
    void allow_windows(i64 below) { words().windows_allowed.store(below); }
    // Where workers join: the next round's start is in its mean buffer; `round` is that round's number in the lineage,
    // and its random numbers are those of `seed`.
    void begin_round(i64 round, u64 seed) {
        const i64 next = finished_round() + 1;
        words().round_shift.store(round - next);
        words().seed.store(seed);
        words().start_in_place.store(next);
        ring();
    }
    // Ingest opens no round from this number on; 0: any.
    void bound_rounds(i64 bound) {
        words().round_bound.store(bound);
        ring();
    }

    // -- rounds: their results, and the slots they need no more

    i64 finished_round() const { return control().averager.finished_round.load(); }
    // Whether `round` is averaged by the deadline (monotonic); sooner false where `or_else` becomes true and wake() is
    // called.
    template <class OrElse>
    bool wait_round(i64 round, i64 deadline_ns, OrElse or_else) const {
        control().worker_event.wait(deadline_ns, [&] { return finished_round() >= round || or_else(); });
        return finished_round() >= round;
    }
    bool wait_round(i64 round, i64 deadline_ns) const {
        return wait_round(round, deadline_ns, [] { return false; });
    }
    // The slots below this number may be filled again.
    void release_slots(i64 below) {
        words().slots_released.store(below);
        ring();
    }
    // Wakes those who wait for a round.
    void wake() { control().worker_event.ring(); }

    // Pins the newest mean: (its buffer, its round). The averagers leave it alone until it is unpinned or another is.
    std::pair<i32, i64> pin_newest();
    void unpin() { words().pinned.store(-1); }

    // -- publications

    // The round that is open at `due_ns` (monotonic) is closed then, once; 0: none is.
    void publication_due(i64 due_ns) { words().publication_due_ns.store(due_ns); }
    // Whether, by the deadline, the round a publication wanted at `due_ns` is closed, or none is open, and every closed
    // one is averaged.
    bool wait_publication(i64 due_ns, i64 deadline_ns) const;

    // The unpublished dead letters of the rounds up to `last_round`, in the order they were written, and their number.
    std::vector<u8> dead_letters(i64 last_round, i64 &entries) const {
        return DeadLetterReader(arena_).up_to(last_round, entries);
    }
    // Of the same entries those that are schemas.
    std::vector<u8> schemas(i64 last_round) const { return DeadLetterReader(arena_).schemas_up_to(last_round); }
    i64 dead_letter_bytes_waiting() const {
        const Control &words = control();
        return words.ingest.dead_letter_bytes_written.load() - words.coordinator.dead_letter_bytes_published.load();
    }
    // Published: the first `entries` of `bytes` bytes make room for others.
    void release_dead_letters(i64 bytes, i64 entries) {
        words().dead_letters_published.store(words().dead_letters_published.load() + entries);
        words().dead_letter_bytes_published.store(words().dead_letter_bytes_published.load() + bytes);
        ring();
    }

  private:
    Control &control() const { return arena_.control(); }
    CoordinatorWords &words() { return control().coordinator; }
    void ring() { control().coordinator_event.ring(); }

    Arena &arena_;
};

}  // namespace st
