#include "train/slot_filler.h"

#include <limits>

#include "base/failpoint.h"
#include "kafka/consumer.h"

namespace st {

namespace {

constexpr i64 RING_PATIENCE_NS = 2'000'000'000;   // pausing drops librdkafka's prefetch, so wait first
constexpr i64 LOOK_AGAIN_NS = 100'000'000;

// A word that only this process writes: no locked instruction per record.
template <class Word>
void count_up(Word &word, i64 by) {
    word.store(word.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace

SlotFiller::SlotFiller(Arena &arena, BatchFiller batch, i64 round_interval_ns, i64 batch_growth)
    : arena_(arena), batch_(std::move(batch)), dead_letters_(arena), round_interval_ns_(round_interval_ns),
      batch_growth_(batch_growth) {}

void SlotFiller::start() {
    max_rows_ = arena_.control().coordinator.row_bound.load();
    rows_before_ = arena_.control().coordinator.rows_seen.load();
    for (const StartPosition &start : arena_.positions()) set_position(start.partition, {start.offset, start.row});
    round_ = arena_.control().averager.finished_round.load() + 1;
    arena_.control().ingest.rounds_opened.store(round_);
    arena_.control().ingest.rounds_closed.store(round_);
    arena_.control().ingest.phase.store(static_cast<u32>(IngestPhase::reading));
}

void SlotFiller::set_position(i32 partition, Position position) {
    const auto at = static_cast<std::size_t>(partition);
    if (at >= positions_.size()) positions_.resize(at + 1);
    positions_[at] = position;
}

void SlotFiller::leave_if_told() {
    const Control &control = arena_.control();
    const bool silent = silence_.lasts(control.coordinator);
    if (silent || control.supervisor.stop.load() == static_cast<u32>(Stop::leave)) throw Leaving();
}

template <class Condition>
void SlotFiller::wait_for_coordinator(Condition condition, bool ring) {
    if (condition()) return;
    Control &control = arena_.control();
    i64 began_ns = monotonic_ns();
    bool told = false;
    control.ingest.waiting_for_ring.store(1);
    while (!control.coordinator_event.wait(monotonic_ns() + LOOK_AGAIN_NS, condition)) {
        leave_if_told();
        if (ring && !told && on_ring_full && monotonic_ns() - began_ns > RING_PATIENCE_NS) {
            told = true;
            on_ring_full(true);
        }
    }
    control.ingest.waiting_for_ring.store(0);
    if (told) on_ring_full(false);
}

void SlotFiller::ensure_round() {
    if (round_open_) return;
    Control &control = arena_.control();
    auto may_open = [&] { return control.coordinator.hold.load() == 0 && !dead_letters_.full(); };
    control.ingest.held.store(!may_open());
    wait_for_coordinator(may_open, true);
    control.ingest.held.store(0);
    dead_letters_.begin_round();
    RoundEntry &entry = arena_.round_entry(round_);
    wait_for_coordinator([&] { return slot_ - control.coordinator.slots_released.load() < arena_.slot_count(); }, true);
    round_first_slot_ = slot_;
    entry.slot_count.store(-1);
    entry.first_slot = slot_;
    entry.round.store(round_);
    round_started_ns_ = monotonic_ns();
    round_open_ = true;
    control.ingest.rounds_opened.store(round_ + 1);
}

u32 SlotFiller::batch_rows() const {
    u32 capacity = arena_.slot_layout().row_capacity;
    if (batch_growth_ == 0) return capacity;
    return static_cast<u32>(std::clamp<i64>((rows_before_ + rows_) / batch_growth_, 1, capacity));
}

void SlotFiller::ensure_slot() {
    if (slot_open_) return;
    Control &control = arena_.control();
    wait_for_coordinator([&] { return slot_ - control.coordinator.slots_released.load() < arena_.slot_count(); }, true);
    u32 capacity = batch_rows();
    if (max_rows_ >= 0 && max_rows_ - rows_ < capacity) capacity = static_cast<u32>(max_rows_ - rows_);
    batch_.open(arena_.slot(slot_), capacity);
    range_count_ = 0;
    newest_timestamp_ms_ = -1;
    slot_open_ = true;
}

Range &SlotFiller::range_of(i32 partition) {
    ensure_round();
    ensure_slot();
    Range *ranges = arena_.slot_ranges(slot_);
    if (range_count_ > 0 && ranges[range_count_ - 1].partition == partition) return ranges[range_count_ - 1];
    if (range_count_ == arena_.slot_layout().range_capacity) {
        publish_slot();
        return range_of(partition);
    }
    Position position = positions_[static_cast<std::size_t>(partition)];
    Range &range = ranges[range_count_++];
    range = Range{};
    range.partition = partition;
    range.from_offset = range.to_offset = position.offset;
    range.from_row = range.to_row = position.row;
    range.record_rows = -1;
    return range;
}

void SlotFiller::publish_slot() {
    SlotHeader &header = arena_.slot_header(slot_);
    header = SlotHeader{};
    header.number = slot_;
    header.round = round_;
    const u32 rows = batch_.close();
    header.range_count = range_count_;
    header.newest_timestamp_ms = newest_timestamp_ms_;
    header.newest_event_time_ms = batch_.newest_event_time_ms();
    IngestWords &words = arena_.control().ingest;
    count_up(words.rows, rows);
    slot_open_ = false;
    ++slot_;
    ST_FAILPOINT("ingest.before_slot");
    words.slots_filled.store(slot_);
    ST_FAILPOINT("ingest.after_slot");
    if (slot_ - round_first_slot_ == i64{arena_.workers()} * arena_.averaging_frequency() || dead_letters_.round_full())
        close_round(CloseReason::full);
    arena_.control().ingest_event.ring();
}

void SlotFiller::close_round(CloseReason reason) {
    RoundEntry &entry = arena_.round_entry(round_);
    entry.close_reason = static_cast<u32>(reason);
    entry.slot_count.store(slot_ - round_first_slot_);
    round_open_ = false;
    ++round_;
    IngestWords &words = arena_.control().ingest;
    words.rounds_closed.store(round_);
    if (const i64 due_ns = publication_due_ns(); due_ns <= monotonic_ns()) words.due_answered_ns.store(due_ns);
    arena_.control().ingest_event.ring();
}

void SlotFiller::close(CloseReason reason) {
    if (slot_open_ && range_count_ > 0) publish_slot();
    if (round_open_ && slot_ > round_first_slot_) close_round(reason);
}

// When a publication wants the open round; far away once a round was closed for it.
i64 SlotFiller::publication_due_ns() const {
    const i64 due_ns = arena_.control().coordinator.publication_due_ns.load();
    const bool answered = due_ns == arena_.control().ingest.due_answered_ns.load();
    return due_ns == 0 || answered ? std::numeric_limits<i64>::max() : due_ns;
}

i64 SlotFiller::due_ns() const {
    constexpr i64 never = std::numeric_limits<i64>::max();
    if (!round_open_) return never;
    return std::min(round_interval_ns_ < 0 ? never : round_started_ns_ + round_interval_ns_, publication_due_ns());
}

void SlotFiller::close_if_due(i64 now_ns) {
    if (now_ns < due_ns()) return;
    close(now_ns >= publication_due_ns() ? CloseReason::publication : CloseReason::interval);
}

void SlotFiller::end() {
    Control &control = arena_.control();
    control.ingest.final_round.store(round_ - 1);
    control.ingest.phase.store(static_cast<u32>(IngestPhase::ended));
    control.ingest_event.ring();
}

void SlotFiller::move_to(i32 partition, i64 offset) {
    Position &position = positions_[static_cast<std::size_t>(partition)];
    if (offset <= position.offset) return;
    Range &range = range_of(partition);
    range.to_offset = offset;
    range.to_row = 0;
    position = {offset, 0};
}

void SlotFiller::report_dead(const RecordView &record) {
    DeadLetterHead head{};
    head.round = round_;
    head.slot = slot_;
    head.offset = record.offset;
    head.partition = record.partition;
    head.key_bytes = static_cast<u32>(std::min<u64>(record.key_size, 1u << 20));
    head.record_bytes = record.size;
    std::vector<DeadLetterHeader> headers;
    if (record.message)
        for (const HeaderView &header : headers_of(record.message))
            headers.push_back({header.name, header.value, header.size});
    dead_letters_.write(head, batch_.tally().dead_rows, record.key, headers, record.value);
}

void SlotFiller::decode(const RecordView &record, Position &position) {
    bool straddles = position.offset == record.offset && position.row > 0;
    batch_.begin(record.value, record.size, straddles ? position.row : 0);
    RowTally &tally = batch_.tally();
    for (;;) {
        Range &range = range_of(record.partition);
        tally.clear();
        const bool done = batch_.next();
        range.trained += tally.trained;
        range.dead += tally.dead;
        range.filtered += tally.filtered;
        rows_ += tally.trained;
        if (!tally.dead_rows.empty()) report_dead(record);
        newest_timestamp_ms_ = std::max(newest_timestamp_ms_, record.timestamp_ms);
        if (done) {
            range.to_offset = record.offset + 1;
            range.to_row = 0;
            ++range.records;
            if (straddles) range.record_rows = static_cast<i32>(batch_.record().row());
            position = {record.offset + 1, 0};
            if (batch_.full() || dead_letters_.round_full()) publish_slot();
            return;
        }
        range.to_offset = record.offset;
        range.to_row = static_cast<i32>(batch_.record().row());
        position = {record.offset, range.to_row};
        straddles = true;
        publish_slot();
        if (full()) return;
    }
}

void SlotFiller::take(const RecordView &record) {
    Position &position = positions_[static_cast<std::size_t>(record.partition)];
    if (record.offset < position.offset) return;
    IngestWords &words = arena_.control().ingest;
    count_up(words.records, 1);
    count_up(words.bytes, static_cast<i64>(record.size));
    if (record.value != nullptr) return decode(record, position);
    Range &range = range_of(record.partition);
    ++range.tombstones;
    ++range.records;
    range.to_offset = record.offset + 1;
    range.to_row = 0;
    position = {record.offset + 1, 0};
}

}  // namespace st
