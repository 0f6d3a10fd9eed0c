#include "train/slot_filler.h"

#include <algorithm>
#include <utility>

namespace st {

SlotFiller::SlotFiller(RoundCutter &cutter, BatchFiller batch, IngestEnd::OnFull on_full)
    : cutter_(cutter), batch_(std::move(batch)), on_full_(std::move(on_full)), place_(cutter.join(*this)) {
    batch_.gather(true);
}

void SlotFiller::start() {
    cutter_.start();
    for (const StartPosition &start : cutter_.arena().positions())
        if (owns(start.partition)) set_position(start.partition, start.offset, start.row);
}

void SlotFiller::add_partition(i32 partition) { set_position(partition, 0, 0); }

void SlotFiller::set_position(i32 partition, i64 offset, i32 row) {
    const auto at = static_cast<std::size_t>(partition);
    if (at >= positions_.size()) positions_.resize(at + 1);
    positions_[at] = {offset, row, true};
}

std::vector<StartPosition> SlotFiller::positions() const {
    std::vector<StartPosition> found;
    for (std::size_t partition = 0; partition < positions_.size(); ++partition)
        if (const Position &position = positions_[partition]; position.own)
            found.push_back({position.offset, position.row, static_cast<i32>(partition)});
    return found;
}

void SlotFiller::open_slot() {
    if (slot_open_) return;
    slot_.buffer = cutter_.open_slot(on_full_);
    slot_.header = {.newest_timestamp_ms = -1};
    slot_.letters.clear();
    noted_schema_ = {};
    batch_.open(cutter_.end().buffer(slot_.buffer), cutter_.batch_rows());
    ranges_ = cutter_.end().ranges(slot_.buffer);
    slot_open_ = true;
    holds_.store(true);
    cutter_.begin_clock();
}

Range &SlotFiller::range_of(i32 partition) {
    open_slot();
    u32 &count = slot_.header.range_count;
    if (count > 0 && ranges_[count - 1].partition == partition) return ranges_[count - 1];
    if (count == cutter_.arena().slot_layout().range_capacity) {
        publish_slot();
        return range_of(partition);
    }
    const Position &position = positions_[static_cast<std::size_t>(partition)];
    Range &range = ranges_[count++];
    range = Range{};
    range.partition = partition;
    range.from_offset = range.to_offset = position.offset;
    range.from_row = range.to_row = position.row;
    range.record_rows = -1;
    return range;
}

void SlotFiller::book(const LateRows &late) {
    const Taken &taken = taken_[late.record];
    Range &range = ranges_[taken.range];
    range.trained -= late.tally.dead + late.tally.filtered;
    range.dead += late.tally.dead;
    range.filtered += late.tally.filtered;
    if (!late.tally.dead_rows.empty()) add_letter(*taken.record, late.tally.dead_rows);
}

void SlotFiller::settle() {
    if (!batch_.gathers()) return;
    batch_.settle();
    for (const LateRows &late : batch_.late()) book(late);
    batch_.late().clear();
    taken_.clear();
}

void SlotFiller::publish_slot() {
    settle();
    slot_.header.rows = batch_.close();
    slot_.header.newest_event_time_ms = batch_.newest_event_time_ms();
    slot_open_ = false;
    holds_.store(false);   // before a round may close: they are in it
    cutter_.hand_over(slot_, on_full_);
}

void SlotFiller::hand_over() {
    const auto turn = this->turn();
    if (slot_open_) publish_slot();
}

void SlotFiller::tell_counts() {
    if (records_ == 0) return;
    cutter_.end().count_records(std::exchange(records_, 0), std::exchange(bytes_, 0));
}

void SlotFiller::move_to(i32 partition, i64 offset) {
    Position &position = positions_[static_cast<std::size_t>(partition)];
    if (offset <= position.offset) return;
    Range &range = range_of(partition);
    range.to_offset = offset;
    range.to_row = 0;
    position.offset = offset;
    position.row = 0;
}

void SlotFiller::add_letter(const RecordView &record, const std::vector<DeadRows> &dead_rows) {
    DeadLetterHead head{};
    head.offset = record.offset;
    head.partition = record.partition;
    head.key_bytes = static_cast<u32>(std::min<u64>(record.key_size, 1u << 20));
    head.record_bytes = record.size;
    std::vector<DeadLetterHeader> headers;
    if (record.headers) headers = record.headers(record.handle);
    slot_.letters.add(head, dead_rows, record.key, headers, record.value);
}

// While a record is read: what became of its own rows goes to its tally, in their order, so that it makes one letter.
void SlotFiller::settle(RowTally &own) {
    batch_.settle();
    for (const LateRows &late : batch_.late()) {
        if (late.record < taken_.size()) book(late);
        else own.take_back(late.tally);
    }
    std::ranges::sort(own.dead_rows, {}, &DeadRows::row_from);
    batch_.late().clear();
}

bool SlotFiller::decode(const RecordView &record, Position &position) {
    bool straddles = position.offset == record.offset && position.row > 0;
    batch_.begin(record, straddles ? position.row : 0);
    if (batch_.record().waits()) return false;
    count(record);
    RowTally &tally = batch_.tally();
    for (;;) {
        Range &range = range_of(record.partition);
        if (const NamedSchema &schema = batch_.record().schema(); schema.name != noted_schema_) note_schema(schema);
        tally.clear();
        const bool gathers = batch_.gathers();
        if (gathers) batch_.number_record(static_cast<u32>(taken_.size()));
        const bool done = batch_.next();
        if (gathers) {
            if (!tally.dead_rows.empty() || !batch_.late().empty()) settle(tally);
            taken_.push_back({&record, slot_.header.range_count - 1});
        }
        range.trained += tally.trained;
        range.dead += tally.dead;
        range.filtered += tally.filtered;
        if (!tally.dead_rows.empty()) add_letter(record, tally.dead_rows);
        i64 &newest_ms = slot_.header.newest_timestamp_ms;
        newest_ms = std::max(newest_ms, record.timestamp_ms);
        if (done) {
            range.to_offset = record.offset + record.span;
            range.to_row = 0;
            ++range.records;
            if (straddles) range.record_rows = static_cast<i32>(batch_.record().row());
            position.offset = record.offset + record.span;
            position.row = 0;
            if (batch_.full() || cutter_.letters_full(slot_.letters)) publish_slot();
            return true;
        }
        range.to_offset = record.offset;
        range.to_row = static_cast<i32>(batch_.record().row());
        position.offset = record.offset;
        position.row = range.to_row;
        straddles = range.to_row > 0;   // 0: its first row waits for the next slot
        publish_slot();
        if (cutter_.full()) return true;
    }
}

bool SlotFiller::take(const RecordView &record) {
    if (record.hole) return move_to(record.partition, record.offset), true;
    Position &position = positions_[static_cast<std::size_t>(record.partition)];
    if (record.offset < position.offset) return true;
    if (record.value != nullptr) return decode(record, position);
    count(record);
    Range &range = range_of(record.partition);
    ++range.tombstones;
    ++range.records;
    range.to_offset = record.offset + record.span;
    range.to_row = 0;
    position.offset = record.offset + record.span;
    position.row = 0;
    return true;
}

}  // namespace st
