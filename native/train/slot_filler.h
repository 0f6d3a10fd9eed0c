// Ingest's hand on the ring: turns records, one after the other, into slots with their ranges and slots into rounds. It
// alone fixes ranges, slots and round ends.
#pragma once
#include <functional>
#include <stdexcept>

#include "decode/batch_filler.h"
#include "ring/dead_letter_ring.h"
#include "ring/silence.h"

struct rd_kafka_message_t;

namespace st {

// Thrown inside ingest when the run is over for it: told to leave, or the coordinator is silent.
struct Leaving : std::runtime_error {
    Leaving() : std::runtime_error("ingest leaves") {}
};

struct RecordView {
    const u8 *value = nullptr;   // null: a tombstone
    u64 size = 0;
    const u8 *key = nullptr;
    u64 key_size = 0;
    i32 partition = 0;
    i64 offset = 0;
    i64 timestamp_ms = -1;
    const rd_kafka_message_t *message = nullptr;   // for headers, of a record that came from Kafka
};

class SlotFiller {
  public:
    // `round_interval_ns` < 0: rounds close only when full. `batch_growth`: a batch has a row for so many rows that the
    // lineage has seen, at least one and at most its slot's capacity; 0: the capacity from the start.
    SlotFiller(Arena &arena, BatchFiller batch, i64 round_interval_ns, i64 batch_growth);

    void start();                                        // after READY: positions and the first round's number
    void add_partition(i32 partition, i64 offset) { set_position(partition, {offset, 0}); }
    void take(const RecordView &record);                 // waits for the ring; throws Leaving
    void move_to(i32 partition, i64 offset);             // an empty range over control records up to `offset`
    void close_if_due(i64 now_ns);                       // round_interval, or a publication
    void close(CloseReason reason);                      // the tail: publishes what the open slot and round hold
    void end();                                          // after close(): no more rounds
    bool full() const { return max_rows_ >= 0 && rows_ >= max_rows_; }
    i64 due_ns() const;                                  // when the open round closes; far away if never
    i64 position(i32 partition) const { return positions_.at(static_cast<std::size_t>(partition)).offset; }

    // Called when the ring has been full for two seconds, and when it has room again.
    std::function<void(bool full)> on_ring_full;

  private:
    struct Position { i64 offset; i32 row; };

    void set_position(i32 partition, Position position);
    i64 publication_due_ns() const;
    void ensure_round();
    void ensure_slot();
    u32 batch_rows() const;                              // of the next slot
    void publish_slot();
    void close_round(CloseReason reason);
    Range &range_of(i32 partition);
    void decode(const RecordView &record, Position &position);
    void report_dead(const RecordView &record);
    void leave_if_told();
    template <class Condition> void wait_for_coordinator(Condition condition, bool ring);

    Arena &arena_;
    BatchFiller batch_;
    DeadLetterWriter dead_letters_;
    Silence silence_;
    i64 round_interval_ns_, batch_growth_, rows_before_ = 0;   // rows_before_: of the lineage's earlier runs
    i64 max_rows_ = -1, rows_ = 0;                       // of this run; max_rows_ < 0: no bound
    std::vector<Position> positions_;                    // by partition
    i64 slot_ = 0, round_ = 0, round_first_slot_ = 0, round_started_ns_ = 0, newest_timestamp_ms_ = -1;
    u32 range_count_ = 0;
    bool slot_open_ = false, round_open_ = false;
};

}  // namespace st
