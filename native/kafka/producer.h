// A librdkafka producer, transactional or not. One thread calls it; only events() may be drained by another.
#pragma once
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kafka/consumer.h"

namespace st {

struct Bytes {
    const void *data = nullptr;   // null: no key, or a record without a value
    std::size_t size = 0;
};

class Producer : public Client {
  public:
    // Throws std::runtime_error with librdkafka's text.
    explicit Producer(const KafkaSettings &settings);
    ~Producer() override;

    // Queues a copy of the record. `partition` rd::any_partition: by the key. `headers` belong to the library when 0 is
    // returned, to the caller otherwise. `tag` comes back with the delivery. Gives 0 or an error code; rd::queue_full:
    // poll.
    int produce(const std::string &topic, i32 partition, Bytes key, Bytes value, rd_kafka_headers_t *headers = nullptr,
                void *tag = nullptr);
    // Serves deliveries and errors; gives how many.
    int poll(int timeout_ms);
    // 0, or rd::timed_out with records still on their way.
    int flush(int timeout_ms);
    int waiting() const { return handle_ ? kafka_.outq_len(handle_) : 0; }
    // Of the last record delivered whose tag was the producer itself; -1 before.
    i64 noted_offset() const { return noted_offset_; }
    // Called from poll(), flush() and commit_transaction() for each record; `message.opaque` is its tag.
    std::function<void(const rd_kafka_message_t &message)> on_delivery;

    KafkaOutcome init_transactions(int timeout_ms);
    KafkaOutcome begin_transaction();
    // Offsets are those of the next records to read, each committed with `metadata`. Refuses an empty list: the library
    // would do nothing and say nothing.
    KafkaOutcome send_offsets(const std::string &topic, const Consumer::Offsets &offsets, const GroupMetadata &group,
                              int timeout_ms, const std::string &metadata = {});
    KafkaOutcome commit_transaction(int timeout_ms);
    KafkaOutcome abort_transaction(int timeout_ms);

    // Frees everything; records not delivered are lost. The destructor does it too.
    void close();

  protected:
    void on_configure(rd_kafka_conf_t *conf) override;

  private:
    static void on_report(rd_kafka_t *, const rd_kafka_message_t *message, void *opaque);
    rd_kafka_topic_t *topic(const std::string &name);
    void require_open() const;

    std::unordered_map<std::string, rd_kafka_topic_t *> topics_;
    i64 noted_offset_ = -1;
};

}   // namespace st
