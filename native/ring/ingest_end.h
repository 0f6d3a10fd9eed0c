// Ingest's end of the ring: waits for room, hands slots over and closes rounds. It alone writes slots, round entries
// and dead letters.
#pragma once
#include <functional>
#include <stdexcept>

#include "ring/dead_letter_ring.h"
#include "ring/silence.h"

namespace st {

// Thrown inside ingest when the run is over for it: told to leave, or the coordinator is silent.
struct Leaving : std::runtime_error {
    Leaving() : std::runtime_error("ingest leaves") {}
};

class IngestEnd {
  public:
    explicit IngestEnd(Arena &arena) : arena_(arena), dead_letters_(arena) {}

    const Arena &arena() const { return arena_; }
    DeadLetterWriter &dead_letters() { return dead_letters_; }
    Stop stop() const { return control().supervisor.stop.load(); }

    // Called when the ring has been full for two seconds, and when it has room again.
    std::function<void(bool full)> on_ring_full;

    // -- a run's beginning and end

    bool wait_ready(i64 deadline_ns) const {
        return control().coordinator_event.wait(deadline_ns, [&] { return control().coordinator.ready.load() != 0; });
    }
    std::vector<StartPosition> positions() const { return arena_.positions(); }
    i64 row_bound() const { return control().coordinator.row_bound.load(); }
    i64 rows_seen() const { return control().coordinator.rows_seen.load(); }
    // From now on records are read; gives the number of the first round.
    i64 begin();
    // No round comes after `last`.
    void end(i64 last);

    // -- rounds

    // Waits until a round may be opened and its first slot has room; throws Leaving.
    void open_round(i64 round, i64 first_slot);
    void close_round(i64 round, i64 slots, CloseReason reason);
    // When a publication wants the open round (monotonic); far away once a round was closed for it.
    i64 publication_due_ns() const;

    // -- slots

    // Waits until the slot may be written; throws Leaving.
    void wait_slot(i64 slot);
    u8 *slot(i64 slot) { return arena_.slot(slot); }
    Range *ranges(i64 slot) { return arena_.slot_ranges(slot); }
    // Hands the slot over: what it holds is fixed.
    void publish_slot(const SlotHeader &header);
    // Slots first_slot.. of the round hold rows[i] rows each, put there already, and no more come where it is closed.
    void fill_round(i64 round, i64 first_slot, const std::vector<u32> &rows, bool closed);
    // Tells those who wait for slots and rounds.
    void announce() { control().ingest_event.ring(); }

    void count_record(u64 bytes);
    // Whether the next record waits for a schema.
    void wait_for_schema(bool waits) {
        if (waits != waits_for_schema_) words().waiting_for_schema.store(waits_for_schema_ = waits);
    }

  private:
    Control &control() const { return arena_.control(); }
    IngestWords &words() { return control().ingest; }
    void leave_if_told();
    template <class Condition> void wait_for_coordinator(Condition condition);

    Arena &arena_;
    DeadLetterWriter dead_letters_;
    Silence silence_;
    bool waits_for_schema_ = false;
};

}  // namespace st
