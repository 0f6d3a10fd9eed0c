#include "ring/ingest_end.h"

#include <limits>

#include "base/failpoint.h"

namespace st {

namespace {

constexpr i64 RING_PATIENCE_NS = 2'000'000'000;   // pausing drops librdkafka's prefetch, so wait first

}  // namespace

IngestEnd::IngestEnd(Arena &arena) : arena_(arena), dead_letters_(arena) {
    for (u32 buffer = 0; buffer < arena.slot_count(); ++buffer) free_.push_back(arena.buffer_of(buffer));
}

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

template <class Condition>
void IngestEnd::wait_for_coordinator(Condition condition, const OnFull &on_full) {
    if (condition()) return;
    const i64 began_ns = monotonic_ns();
    Silence silence;
    bool told = false;
    while (!control().coordinator_event.wait(monotonic_ns() + LOOK_AGAIN_NS, condition)) {
        if (silence.lasts(control().coordinator) || stop() == Stop::leave) throw Leaving();
        if (!told && on_full && monotonic_ns() - began_ns > RING_PATIENCE_NS) {
            told = true;
            on_full(true);
        }
    }
    if (told) on_full(false);
}

void IngestEnd::gather_released() {
    const i64 released = control().coordinator.slots_released.load();
    for (; gathered_ < released; ++gathered_) free_.push_back(arena_.buffer_of(gathered_));
}

u32 IngestEnd::take_buffer(const OnFull &on_full) {
    for (;;) {
        {
            std::lock_guard lock(buffers_);
            gather_released();
            if (!free_.empty()) {
                const u32 buffer = free_.front();
                free_.pop_front();
                taken_.fetch_add(1);
                return buffer;
            }
        }
        // whoever has gathered what came free
        wait_for_coordinator([&] { return has_number(taken_.load()); }, on_full);
    }
}

void IngestEnd::open_round(i64 round, i64 first_slot, const OnFull &on_full) {
    auto may_open = [&] { return control().coordinator.hold.load() == 0 && !dead_letters_.full(); };
    if (!may_open()) {
        words().held.fetch_add(1);
        wait_for_coordinator(may_open, on_full);
        words().held.fetch_sub(1);
    }
    auto within = [&] {
        const i64 bound = control().coordinator.round_bound.load();
        return bound == 0 || round < bound;
    };
    wait_for_coordinator(within, {});
    dead_letters_.begin_round();
    wait_for_coordinator([&] { return has_number(first_slot); }, on_full);   // then the round of this entry is over too
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

void IngestEnd::publish_slot(const SlotHeader &header, u32 buffer) {
    arena_.buffer_of(header.number) = buffer;
    arena_.slot_header(header.number) = header;
    words().rows.fetch_add(header.rows, std::memory_order_relaxed);
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

}  // namespace st
