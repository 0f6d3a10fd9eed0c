// The records topic of a Kafka cluster, by manual assignment of all its partitions.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "kafka/consumer.h"
#include "source/source.h"

namespace st {

// A message without an error as a record, in place until the consumer's release().
RecordView record_of(const MessageView &message);

class KafkaSource final : public Source {
  public:
    // `end_offsets`, where `bounded`: (partition, offset) up to which each partition is read; those left out have
    // nothing to give. The consumer stays as long as this reads with it.
    KafkaSource(Consumer &consumer, std::string topic, std::vector<std::pair<i32, i64>> end_offsets, bool bounded);

    void start(const std::vector<StartPosition> &positions) override;
    void add(i32 partition) override;
    // Throws KafkaFailure for an error that ends the run (a position out of the topic's range, a topic that is gone).
    std::size_t take(RecordView *out, std::size_t capacity, i64 wait_ns) override;
    void release() override { consumer_->release(); }
    bool ended() const override { return bounded_ && open_ == 0; }
    void hold(i32 partition) override;
    void pause(bool full) override;

    // In the place of the consumer before; start() comes next.
    void read_with(Consumer &consumer);

  private:
    // Whether the message gives a view.
    bool view(const MessageView &message, RecordView &out);
    bool end(i32 partition, i64 offset, RecordView &out);
    i64 end_of(i32 partition) const {
        const auto at = static_cast<std::size_t>(partition);
        return at < end_of_.size() ? end_of_[at] : 0;
    }

    Consumer *consumer_;
    std::string topic_;
    std::vector<std::pair<i32, i64>> end_offsets_;
    std::vector<i64> end_of_;            // by partition; 0: reached, or none
    u32 open_ = 0;                       // partitions that have not reached their end
    bool bounded_, paused_ = false;
    bool holds_ = false;                 // some partition, since the last start()
    std::vector<MessageView> messages_;
};

}  // namespace st
