#include "ring/ingest_end.h"

#include <limits>

#include "base/failpoint.h"

namespace st {

namespace {

constexpr i64 RING_PATIENCE_NS = 2'000'000'000;   // pausing drops librdkafka's prefetch, so wait first

// A word that only this process writes: no locked instruction per record.
template <class Word>
void count_up(Word &word, i64 by) {
    word.store(word.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace

i64 IngestEnd::begin() {
    const i64 first = control().averager.finished_round.load() + 1;
    words().rounds_opened.store(first);
    words().rounds_closed.store(first);
    words().phase.store(IngestPhase::reading);
    return first;
}

void IngestEnd::end(i64 last) {
    words().final_round.store(last);
    words().phase.store(IngestPhase::ended);
    announce();
}

void IngestEnd::leave_if_told() {
    if (silence_.lasts(control().coordinator) || stop() == Stop::leave) throw Leaving();
}

template <class Condition>
void IngestEnd::wait_for_coordinator(Condition condition) {
    if (condition()) return;
    const i64 began_ns = monotonic_ns();
    bool told = false;
    words().waiting_for_ring.store(1);
    while (!control().coordinator_event.wait(monotonic_ns() + LOOK_AGAIN_NS, condition)) {
        leave_if_told();
        if (!told && on_ring_full && monotonic_ns() - began_ns > RING_PATIENCE_NS) {
            told = true;
            on_ring_full(true);
        }
    }
    words().waiting_for_ring.store(0);
    if (told) on_ring_full(false);
}

void IngestEnd::wait_slot(i64 slot) {
    wait_for_coordinator([&] { return slot - control().coordinator.slots_released.load() < arena_.slot_count(); });
}

void IngestEnd::open_round(i64 round, i64 first_slot) {
    auto may_open = [&] { return control().coordinator.hold.load() == 0 && !dead_letters_.full(); };
    words().held.store(!may_open());
    wait_for_coordinator(may_open);
    words().held.store(0);
    dead_letters_.begin_round();
    wait_slot(first_slot);   // then the round that had this entry is over too
    RoundEntry &entry = arena_.round_entry(round);
    entry.slot_count.store(-1);
    entry.first_slot = first_slot;
    entry.round.store(round);
    words().rounds_opened.store(round + 1);
}

void IngestEnd::close_round(i64 round, i64 slots, CloseReason reason) {
    RoundEntry &entry = arena_.round_entry(round);
    entry.close_reason = reason;
    entry.slot_count.store(slots);
    words().rounds_closed.store(round + 1);
    if (const i64 due_ns = publication_due_ns(); due_ns <= monotonic_ns()) words().due_answered_ns.store(due_ns);
    announce();
}

i64 IngestEnd::publication_due_ns() const {
    const i64 due_ns = control().coordinator.publication_due_ns.load();
    const bool answered = due_ns == control().ingest.due_answered_ns.load();
    return due_ns == 0 || answered ? std::numeric_limits<i64>::max() : due_ns;
}

void IngestEnd::publish_slot(const SlotHeader &header) {
    arena_.slot_header(header.number) = header;
    count_up(words().rows, header.rows);
    ST_FAILPOINT("ingest.before_slot");
    words().slots_filled.store(header.number + 1);
    ST_FAILPOINT("ingest.after_slot");
}

void IngestEnd::fill_round(i64 round, i64 first_slot, const std::vector<u32> &rows, bool closed) {
    i64 slot = first_slot;
    for (u32 count : rows) {
        arena_.slot_header(slot) = {.number = slot, .round = round, .rows = count};
        ++slot;
    }
    RoundEntry &entry = arena_.round_entry(round);
    entry.first_slot = first_slot;
    entry.slot_count.store(closed ? slot - first_slot : -1);
    entry.round.store(round);
    words().slots_filled.store(slot);
}

void IngestEnd::count_record(u64 bytes) {
    count_up(words().records, 1);
    count_up(words().bytes, static_cast<i64>(bytes));
}

}  // namespace st
