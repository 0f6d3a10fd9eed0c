// Ingest's end of the ring: waits for room, hands slots over and closes rounds. It alone writes slots, round entries
// and dead letters. What is said of rounds, slots and letters is one thread's at a time; looks, waits and counts are
// any thread's.
#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
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
    explicit IngestEnd(Arena &arena);

    const Arena &arena() const { return arena_; }
    DeadLetterWriter &dead_letters() { return dead_letters_; }
    const DeadLetterWriter &dead_letters() const { return dead_letters_; }
    Stop stop() const { return left_.load() ? Stop::leave : control().supervisor.stop.load(); }
    // All threads of ingest are told to leave.
    void leave() { left_.store(true); }

    // Called by the waits below when the ring has been full for two seconds, and when it has room again.
    using OnFull = std::function<void(bool full)>;

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
    void open_round(i64 round, i64 first_slot, const OnFull &on_full);
    void close_round(i64 round, i64 slots, CloseReason reason);
    // When a publication wants the open round (monotonic); far away once a round was closed for it.
    i64 publication_due_ns() const;

    // -- slots

    // A buffer to fill, which waits for a number; throws Leaving.
    u32 take_buffer(const OnFull &on_full);
    u8 *buffer(u32 buffer) { return arena_.buffer(buffer); }
    Range *ranges(u32 buffer) { return arena_.ranges_in(arena_.buffer(buffer)); }
    // Hands the buffer over as slot header.number: what it holds is fixed.
    void publish_slot(const SlotHeader &header, u32 buffer);
    // Slots first_slot.. of the round hold rows[i] rows each, put there already, and no more come where it is closed.
    void fill_round(i64 round, i64 first_slot, const std::vector<u32> &rows, bool closed);
    // Tells those who wait for slots and rounds.
    void announce() { control().ingest_event.ring(); }

    void count_records(i64 records, i64 bytes) {
        words().records.fetch_add(records, std::memory_order_relaxed);
        words().bytes.fetch_add(bytes, std::memory_order_relaxed);
    }
    // The next record of one more thread waits for a schema, or of one less.
    void wait_for_schema(bool waits) { words().waiting_for_schema.fetch_add(waits ? 1 : -1); }

  private:
    Control &control() const { return arena_.control(); }
    IngestWords &words() { return control().ingest; }
    template <class Condition> void wait_for_coordinator(Condition condition, const OnFull &on_full);
    // The buffers of the slots that were released since are free.
    void gather_released();
    bool has_number(i64 slot) const {
        return slot - control().coordinator.slots_released.load() < arena_.slot_count();
    }

    Arena &arena_;
    DeadLetterWriter dead_letters_;
    std::atomic<bool> left_{false};
    std::mutex buffers_;                // of what follows
    std::deque<u32> free_;
    i64 gathered_ = 0;                  // slots below it gave their buffers back
    std::atomic<i64> taken_{0};         // buffers, ever; as many as slots that have, or will have, a number
};

}  // namespace st
