#include "train/slot_filler.h"

#include <algorithm>
#include <limits>

namespace st {

SlotFiller::SlotFiller(IngestEnd &end, BatchFiller batch, i64 round_interval_ns, i64 batch_growth)
    : end_(end), batch_(std::move(batch)), round_interval_ns_(round_interval_ns), batch_growth_(batch_growth) {}

void SlotFiller::start() {
    max_rows_ = end_.row_bound();
    rows_before_ = end_.rows_seen();
    for (const StartPosition &start : end_.positions()) set_position(start.partition, {start.offset, start.row});
    round_ = end_.begin();
}

void SlotFiller::set_position(i32 partition, Position position) {
    const auto at = static_cast<std::size_t>(partition);
    if (at >= positions_.size()) positions_.resize(at + 1);
    positions_[at] = position;
}

std::vector<StartPosition> SlotFiller::positions() const {
    std::vector<StartPosition> found;
    for (const Position &position : positions_)
        found.push_back({position.offset, position.row, static_cast<i32>(found.size())});
    return found;
}

void SlotFiller::ensure_round() {
    if (round_open_) return;
    end_.open_round(round_, slot_);
    round_first_slot_ = slot_;
    round_started_ns_ = monotonic_ns();
    round_open_ = true;
}

u32 SlotFiller::batch_rows() const {
    u32 capacity = end_.arena().slot_layout().row_capacity;
    if (batch_growth_ == 0) return capacity;
    return static_cast<u32>(std::clamp<i64>((rows_before_ + rows_) / batch_growth_, 1, capacity));
}

void SlotFiller::ensure_slot() {
    if (slot_open_) return;
    end_.wait_slot(slot_);
    u32 capacity = batch_rows();
    if (max_rows_ >= 0 && max_rows_ - rows_ < capacity) capacity = static_cast<u32>(max_rows_ - rows_);
    batch_.open(end_.slot(slot_), capacity);
    range_count_ = 0;
    newest_timestamp_ms_ = -1;
    slot_open_ = true;
}

Range &SlotFiller::range_of(i32 partition) {
    ensure_round();
    ensure_slot();
    Range *ranges = end_.ranges(slot_);
    if (range_count_ > 0 && ranges[range_count_ - 1].partition == partition) return ranges[range_count_ - 1];
    if (range_count_ == end_.arena().slot_layout().range_capacity) {
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
    const u32 rows = batch_.close();
    end_.publish_slot({.number = slot_,
                       .round = round_,
                       .rows = rows,
                       .range_count = range_count_,
                       .newest_timestamp_ms = newest_timestamp_ms_,
                       .newest_event_time_ms = batch_.newest_event_time_ms()});
    slot_open_ = false;
    ++slot_;
    const i64 round_slots = i64{end_.arena().workers()} * end_.arena().averaging_frequency();
    if (slot_ - round_first_slot_ == round_slots || end_.dead_letters().round_full()) close_round(CloseReason::full);
    end_.announce();
}

void SlotFiller::close_round(CloseReason reason) {
    end_.close_round(round_, slot_ - round_first_slot_, reason);
    round_open_ = false;
    ++round_;
}

void SlotFiller::close(CloseReason reason) {
    if (slot_open_ && range_count_ > 0) publish_slot();
    if (round_open_ && slot_ > round_first_slot_) close_round(reason);
}

i64 SlotFiller::due_ns() const {
    constexpr i64 never = std::numeric_limits<i64>::max();
    if (!round_open_) return never;
    return std::min(round_interval_ns_ < 0 ? never : round_started_ns_ + round_interval_ns_, end_.publication_due_ns());
}

void SlotFiller::close_if_due(i64 now_ns) {
    if (now_ns < due_ns()) return;
    close(now_ns >= end_.publication_due_ns() ? CloseReason::publication : CloseReason::interval);
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
    if (record.headers) headers = record.headers(record.handle);
    end_.dead_letters().write(head, batch_.tally().dead_rows, record.key, headers, record.value);
}

bool SlotFiller::decode(const RecordView &record, Position &position) {
    bool straddles = position.offset == record.offset && position.row > 0;
    batch_.begin(record, straddles ? position.row : 0);
    if (batch_.record().waits()) return false;
    end_.count_record(record.size);
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
            if (batch_.full() || end_.dead_letters().round_full()) publish_slot();
            return true;
        }
        range.to_offset = record.offset;
        range.to_row = static_cast<i32>(batch_.record().row());
        position = {record.offset, range.to_row};
        straddles = range.to_row > 0;   // 0: its first row waits for the next slot
        publish_slot();
        if (full()) return true;
    }
}

bool SlotFiller::take(const RecordView &record) {
    if (record.hole) return move_to(record.partition, record.offset), true;
    Position &position = positions_[static_cast<std::size_t>(record.partition)];
    if (record.offset < position.offset) return true;
    if (record.value != nullptr) return decode(record, position);
    end_.count_record(record.size);
    Range &range = range_of(record.partition);
    ++range.tombstones;
    ++range.records;
    range.to_offset = record.offset + 1;
    range.to_row = 0;
    position = {record.offset + 1, 0};
    return true;
}

}  // namespace st
