#include "train/round_cutter.h"

#include <algorithm>
#include <limits>

#include "train/slot_filler.h"

namespace st {

RoundCutter::RoundCutter(Arena &arena, i64 round_interval_ns, i64 batch_growth, i64 min_batch_rows)
    : end_(arena), round_interval_ns_(round_interval_ns), batch_growth_(batch_growth),
      min_batch_rows_(min_batch_rows) {}

u32 RoundCutter::join(SlotFiller &filler) {
    fillers_.push_back(&filler);
    return static_cast<u32>(fillers_.size() - 1);
}

void RoundCutter::start() {
    std::call_once(started_, [this] {
        max_rows_ = end_.row_bound();
        if (max_rows_ >= 0 && fillers_.size() > 1) throw std::logic_error("ingest: a bound of rows needs one thread");
        rows_before_ = end_.rows_seen();
        round_ = end_.begin();
    });
}

u32 RoundCutter::batch_rows() const {
    const i64 capacity = arena().slot_layout().row_capacity, rows = rows_.load();
    const i64 least = std::clamp<i64>(min_batch_rows_, 1, capacity);
    const i64 grown =
        batch_growth_ == 0 ? capacity : std::clamp<i64>((rows_before_ + rows) / batch_growth_, least, capacity);
    return static_cast<u32>(max_rows_ < 0 ? grown : std::min(grown, max_rows_ - rows));
}

u32 RoundCutter::open_slot(const IngestEnd::OnFull &on_full) {
    {
        std::lock_guard lock(mutex_);
        open_round(on_full);
    }
    return end_.take_buffer(on_full);
}

void RoundCutter::begin_clock() {
    i64 none = 0;
    if (began_ns_.load() == 0) began_ns_.compare_exchange_strong(none, monotonic_ns());
}

void RoundCutter::open_round(const IngestEnd::OnFull &on_full) {
    if (round_open_) return;
    end_.open_round(round_, slot_, on_full);
    round_first_slot_ = slot_;
    round_open_ = true;
}

void RoundCutter::hand_over(FilledSlot &slot, const IngestEnd::OnFull &on_full) {
    std::lock_guard lock(mutex_);
    open_round(on_full);   // the one it was begun in may be closed
    slot.header.number = slot_;
    slot.header.round = round_;
    end_.dead_letters().write(slot.letters, round_, slot_);
    rows_.fetch_add(slot.header.rows);
    end_.publish_slot(slot.header, slot.buffer);
    ++slot_;
    const i64 round_slots = i64{arena().workers()} * arena().averaging_frequency();
    if (slot_ - round_first_slot_ == round_slots || end_.dead_letters().round_full()) close_round(CloseReason::full);
    else begin_clock();   // it may have been stopped with the round the slot was begun in
    end_.announce();
}

void RoundCutter::close_round(CloseReason reason) {
    end_.close_round(round_, slot_ - round_first_slot_, reason);
    round_open_ = false;
    ++round_;
    began_ns_.store(0);
    const bool more = std::any_of(fillers_.begin(), fillers_.end(), [](const SlotFiller *it) { return it->holds(); });
    if (more) begin_clock();   // those rows are the next round's
}

i64 RoundCutter::due_ns() const {
    constexpr i64 never = std::numeric_limits<i64>::max();
    const i64 began_ns = began_ns_.load();
    if (began_ns == 0) return never;
    return std::min(round_interval_ns_ < 0 ? never : began_ns + round_interval_ns_, end_.publication_due_ns());
}

void RoundCutter::close_if_due(i64 now_ns) {
    if (now_ns < due_ns()) return;
    std::lock_guard lock(closing_);
    if (now_ns < due_ns()) return;   // another thread has closed it
    close_all(now_ns >= end_.publication_due_ns() ? CloseReason::publication : CloseReason::interval);
}

void RoundCutter::close(CloseReason reason) {
    std::lock_guard lock(closing_);
    close_all(reason);
}

void RoundCutter::close_all(CloseReason reason) {
    for (SlotFiller *filler : fillers_) filler->hand_over();
    std::lock_guard lock(mutex_);
    if (round_open_ && slot_ > round_first_slot_) close_round(reason);
}

void RoundCutter::finish(CloseReason reason) {
    if (finished_.fetch_add(1) + 1 < fillers_.size()) return;
    std::lock_guard lock(closing_);
    close_all(reason);
    end_.end(round_ - 1);
}

}  // namespace st
