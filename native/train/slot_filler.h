// One thread's hand on the ring: turns the records of its partitions, one after the other, into slots with their
// ranges. Ingest alone fixes ranges, slots and round ends.
#pragma once
#include <atomic>
#include <mutex>
#include <vector>

#include "decode/batch_filler.h"
#include "source/source.h"
#include "train/round_cutter.h"

namespace st {

class SlotFiller {
  public:
    SlotFiller(RoundCutter &cutter, BatchFiller batch, IngestEnd::OnFull on_full);
    SlotFiller(const SlotFiller &) = delete;

    void start();                            // after READY: its partitions' positions
    void add_partition(i32 partition);       // from its beginning
    bool owns(i32 partition) const { return cutter_.owns(place_, partition); }
    std::vector<StartPosition> positions() const;   // where each of its partitions has got to

    // While it lasts records are taken, and nobody else hands the open slot over.
    std::unique_lock<std::mutex> turn() { return std::unique_lock(turn_); }
    // In its turn. Waits for the ring; throws Leaving. False, and nothing taken: the record needs a schema that is not
    // known yet.
    bool take(const RecordView &record);
    // In its turn, which ends with it: finishes what waits for more of its block.
    void settle();
    // Records that are taken next.
    void look_ahead(const RecordView *records, u64 count) { batch_.look_ahead(records, count); }
    // What was taken since is counted for all to see.
    void tell_counts();

    // By any thread, in nobody's turn: hands the open slot over where it holds anything.
    void hand_over();
    // Rows were taken that are in no slot of a number.
    bool holds() const { return holds_.load(); }

  private:
    struct Position { i64 offset; i32 row; bool own = false; };
    struct Taken { const RecordView *record; u32 range; };

    void set_position(i32 partition, i64 offset, i32 row);
    void open_slot();
    void publish_slot();
    Range &range_of(i32 partition);
    bool decode(const RecordView &record, Position &position);
    void move_to(i32 partition, i64 offset);             // an empty range over control records up to `offset`
    void add_letter(const RecordView &record, const std::vector<DeadRows> &dead_rows);
    void book(const LateRows &late);
    void settle(RowTally &own);
    // A round is a function of its log, which says what its records' schemas were, and never asks for them again.
    void note_schema(const NamedSchema &schema) {
        if (!schema.name) return;
        noted_schema_ = schema.name;
        slot_.letters.add_schema(schema.name, schema.answer->schema, schema.answer->refusal);
    }
    void count(const RecordView &record) { ++records_, bytes_ += static_cast<i64>(record.size); }

    RoundCutter &cutter_;
    BatchFiller batch_;
    IngestEnd::OnFull on_full_;
    u32 place_;
    std::mutex turn_;
    std::vector<Position> positions_;                    // by partition
    FilledSlot slot_;
    Range *ranges_ = nullptr;
    std::vector<Taken> taken_;                           // into the open slot since settle(), of which rows may wait
    i64 records_ = 0, bytes_ = 0;                        // not told yet
    bool slot_open_ = false;
    SchemaName noted_schema_;                            // of the slot's the newest
    std::atomic<bool> holds_{false};
};

}  // namespace st
