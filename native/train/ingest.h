// The loop of one of ingest's threads: source -> decoder -> slots, a batch of records at a time, without Python.
#pragma once
#include <vector>

#include "source/source.h"
#include "train/slot_filler.h"

namespace st {

enum class IngestStatus : u32 {
    working = 0,   // the deadline passed; call again
    ended = 1,     // drained, or the bound is reached
    leave = 2,     // told to leave, or the coordinator is silent
    waiting = 3,   // as working, but some partition's next record needs a schema that is not known yet
    round_ended = 4,   // as working: the source has ended the round that was open
};

class Ingest {
  public:
    // The cutter and the source, this thread's own, stay as long as this.
    Ingest(RoundCutter &cutter, Source &source, BatchFiller batch);
    Ingest(const Ingest &) = delete;
    void start();                        // after READY, when every thread has its loop
    bool owns(i32 partition) const { return filler_.owns(partition); }   // no other thread reads it
    void add_partition(i32 partition);   // found later, an own one: read from offset 0
    // The source is another now, or a schema is known that was not: it begins where this has got to. What was not taken
    // comes again.
    void rewind();
    // Throws what the source throws.
    IngestStatus run(i64 deadline_ns);

  private:
    void prefetch(std::size_t at) const;
    void take_some();
    void take(const RecordView &record);
    bool bound_reached() const {
        return cutter_.full() || (next_ == count_ && source_.ended() && waiting_.empty());
    }
    IngestStatus finish(CloseReason reason);

    static constexpr std::size_t BATCH = 2048;       // views at a time; of Kafka 1024 messages: 0.3 ms of decoding
    RoundCutter &cutter_;
    Source &source_;
    SlotFiller filler_;
    std::vector<RecordView> records_;
    std::size_t count_ = 0, next_ = 0;
    std::vector<i32> waiting_;   // partitions whose next record needs a schema that is not known yet
};

}  // namespace st
