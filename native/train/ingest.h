// The ingest process's loop: consumer -> decoder -> slots, a batch of messages at a time, without Python.
#pragma once

#include "train/slot_filler.h"
#include "kafka/consumer.h"

namespace st {

enum class IngestStatus : u32 {
    working = 0,   // the deadline passed; call again
    ended = 1,     // drained, or the bound is reached
    leave = 2,     // told to leave, or the coordinator is silent
};

struct IngestSettings {
    std::string topic;
    i64 round_interval_ns = -1;
    i64 batch_growth = 0;                           // as SlotFiller has it
    std::vector<std::pair<i32, i64>> end_offsets;   // with `bounded`: stop once every partition has reached its own
    bool bounded = false;
};

class Ingest {
  public:
    Ingest(Arena &arena, Consumer &consumer, BatchFiller batch, IngestSettings settings);
    void start();                                    // after READY
    void add_partition(i32 partition);               // found later: read from offset 0
    void read_with(Consumer &consumer);              // from now on, in the place of the one before
    // Throws KafkaFailure for an error that ends the run (a position out of the topic's range, a topic that is gone).
    IngestStatus run(i64 deadline_ns);
    u64 errors() const { return errors_; }           // passing ones: brokers away, time-outs

  private:
    void prefetch(std::size_t at) const;
    void take(const MessageView &message);
    void end_partition(i32 partition, i64 offset);
    i64 end_of(i32 partition) const {
        const auto at = static_cast<std::size_t>(partition);
        return at < end_of_.size() ? end_of_[at] : 0;
    }
    bool bound_reached() const { return filler_.full() || (settings_.bounded && open_ == 0); }
    IngestStatus finish(CloseReason reason);
    void pause(bool full);

    static constexpr std::size_t BATCH = 1024;       // messages taken at a time: about 0.3 ms of decoding
    Arena &arena_;
    Consumer *consumer_;
    std::vector<i32> partitions_;
    IngestSettings settings_;
    SlotFiller filler_;
    std::vector<i64> end_of_;                        // by partition; 0: reached, or none
    bool paused_ = false;
    u32 open_ = 0;                                   // partitions that have not reached their end
    std::vector<MessageView> messages_;
    std::size_t count_ = 0, next_ = 0;
    u64 errors_ = 0;
};

}  // namespace st
