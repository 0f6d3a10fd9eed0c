// Ingest's hand on the ring: turns records, one after the other, into slots with their ranges and slots into rounds. It
// alone fixes ranges, slots and round ends.
#pragma once
#include <vector>

#include "decode/batch_filler.h"
#include "ring/ingest_end.h"
#include "source/source.h"

namespace st {

class SlotFiller {
  public:
    // `round_interval_ns` < 0: rounds close only when full. `batch_growth`: a batch has a row for so many rows that the
    // lineage has seen, at least one and at most its slot's capacity; 0: the capacity from the start.
    SlotFiller(IngestEnd &end, BatchFiller batch, i64 round_interval_ns, i64 batch_growth);

    void start();                                        // after READY: positions and the first round's number
    void add_partition(i32 partition) { set_position(partition, {0, 0}); }   // from its beginning
    // Waits for the ring; throws Leaving. False, and nothing taken: the record needs a schema that is not known yet.
    bool take(const RecordView &record);
    void close_if_due(i64 now_ns);                       // round_interval, or a publication
    void close(CloseReason reason);                      // the tail: publishes what the open slot and round hold
    void end() { end_.end(round_ - 1); }                 // after close(): no more rounds
    bool full() const { return max_rows_ >= 0 && rows_ >= max_rows_; }
    i64 due_ns() const;                                  // when the open round closes; far away if never
    std::vector<StartPosition> positions() const;        // where each partition has got to
    u32 partitions() const { return static_cast<u32>(positions_.size()); }

  private:
    struct Position { i64 offset; i32 row; };

    void set_position(i32 partition, Position position);
    void ensure_round();
    void ensure_slot();
    u32 batch_rows() const;                              // of the next slot
    void publish_slot();
    void close_round(CloseReason reason);
    Range &range_of(i32 partition);
    bool decode(const RecordView &record, Position &position);
    void move_to(i32 partition, i64 offset);             // an empty range over control records up to `offset`
    void report_dead(const RecordView &record);

    IngestEnd &end_;
    BatchFiller batch_;
    i64 round_interval_ns_, batch_growth_, rows_before_ = 0;   // rows_before_: of the lineage's earlier runs
    i64 max_rows_ = -1, rows_ = 0;                       // of this run; max_rows_ < 0: no bound
    std::vector<Position> positions_;                    // by partition
    i64 slot_ = 0, round_ = 0, round_first_slot_ = 0, round_started_ns_ = 0, newest_timestamp_ms_ = -1;
    u32 range_count_ = 0;
    bool slot_open_ = false, round_open_ = false;
};

}  // namespace st
