// Numbers slots and cuts rounds, for all threads of ingest: a slot gets its number, and with it its round, when it is
// handed over. A filler that is handed over by another's hand is in nobody's turn then.
#pragma once
#include <atomic>
#include <mutex>
#include <vector>

#include "ring/ingest_end.h"

namespace st {

class SlotFiller;

// A slot on its way: its number and its round are not known yet.
struct FilledSlot {
    u32 buffer = 0;
    SlotHeader header{};
    DeadLetters letters;
};

class RoundCutter {
  public:
    // `round_interval_ns` < 0: rounds close only when full. `batch_growth`: a batch has a row for so many rows that the
    // lineage has seen, at least `min_batch_rows` and at most its slot's capacity; 0: the capacity
    // from the start.
    RoundCutter(Arena &arena, i64 round_interval_ns, i64 batch_growth, i64 min_batch_rows);
    RoundCutter(const RoundCutter &) = delete;

    IngestEnd &end() { return end_; }
    const Arena &arena() const { return end_.arena(); }

    // -- the beginning

    // Another thread's filler, which stays as long as this; gives its place. All join before the first start().
    u32 join(SlotFiller &filler);
    // After READY: the first round's number. Every filler calls it. Throws std::logic_error where a bound of rows would
    // be counted by several threads.
    void start();
    u32 partitions() const { return static_cast<u32>(arena().positions().size()); }   // that the run began with
    // Whether the partition is that filler's.
    bool owns(u32 place, i32 partition) const { return static_cast<u32>(partition) % fillers_.size() == place; }

    // -- slots; all but the looks wait for the ring and throw Leaving

    // Rows of the slot opened next.
    u32 batch_rows() const;
    // The buffer to fill next, of a round that is open.
    u32 open_slot(const IngestEnd::OnFull &on_full);
    // Rows that are in no closed round yet are there now.
    void begin_clock();
    // Numbers the slot and publishes it; closes the round it fills.
    void hand_over(FilledSlot &slot, const IngestEnd::OnFull &on_full);
    // Whether the round has all letters it may bring once those are in it.
    bool letters_full(const DeadLetters &letters) const { return end_.dead_letters().round_full_with(letters); }
    bool full() const { return max_rows_ >= 0 && rows_.load() >= max_rows_; }   // of --max-rows

    // -- rounds

    i64 due_ns() const;   // when the open round closes; far away if never
    void close_if_due(i64 now_ns);
    // The open round, with what was taken; called in nobody's turn.
    void close(CloseReason reason);
    // The caller's filler takes no more; the last to say so closes what is open, and no round comes after it.
    void finish(CloseReason reason);

  private:
    void open_round(const IngestEnd::OnFull &on_full);
    void close_all(CloseReason reason);
    void close_round(CloseReason reason);

    IngestEnd end_;
    std::vector<SlotFiller *> fillers_;
    i64 round_interval_ns_, batch_growth_, min_batch_rows_;
    i64 rows_before_ = 0;                // of the lineage's earlier runs
    i64 max_rows_ = -1;                  // < 0: no bound
    std::once_flag started_;
    std::atomic<i64> rows_{0};           // handed over, of this run
    std::atomic<i64> began_ns_{0};       // when the oldest row that is in no closed round was taken; 0: there is none
    std::atomic<u32> finished_{0};       // fillers
    std::mutex closing_;                 // one closes what all have open; before any filler's turn and `mutex_`
    std::mutex mutex_;                   // of what follows; after a filler's turn
    i64 slot_ = 0, round_ = 0, round_first_slot_ = 0;
    bool round_open_ = false;
};

}  // namespace st
