// What consumer and producer share: a librdkafka handle made from settings, with its events routed to a queue.
#pragma once
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kafka/events.h"
#include "kafka/librdkafka.h"
#include "kafka/settings.h"

namespace st {

// A call of librdkafka failed; `code` is its error code.
struct KafkaFailure : std::runtime_error {
    KafkaFailure(int code_, const std::string &what) : std::runtime_error(what), code(code_) {}
    int code;
};

// Throw KafkaFailure for an error; take the latter.
void check(int code, const char *what);
void check(rd_kafka_error_t *error, const char *what);

// What an answer of the transactional interface says; code 0 is success.
struct KafkaOutcome {
    int code = 0;
    bool retriable = false;        // call the same function again
    bool requires_abort = false;   // abort the transaction, then begin a new one
    bool fatal = false;            // this producer is of no use any more
    std::string text;
};

// Takes the error's contents and destroys it; null is success.
KafkaOutcome take_outcome(rd_kafka_error_t *error);

// A list of (partition, offset) of one topic, destroyed with its scope.
class PartitionList {
  public:
    PartitionList() : list(Library::get().topic_partition_list_new(8)) {}
    explicit PartitionList(rd_kafka_topic_partition_list_t *owned) : list(owned) {}
    PartitionList(const std::string &topic, const std::vector<std::pair<i32, i64>> &offsets,
                  const std::string &metadata = {})
        : PartitionList() {
        for (auto [partition, offset] : offsets) add(topic, partition, offset, metadata);
    }
    ~PartitionList() { Library::get().topic_partition_list_destroy(list); }
    PartitionList(const PartitionList &) = delete;
    PartitionList &operator=(const PartitionList &) = delete;

    void add(const std::string &topic, i32 partition, i64 offset, const std::string &metadata = {}) {
        rd_kafka_topic_partition_t *added = Library::get().topic_partition_list_add(list, topic.c_str(), partition);
        added->offset = offset;
        if (metadata.empty()) return;
        added->metadata = std::malloc(metadata.size());   // freed with the list
        if (!added->metadata) throw std::bad_alloc();
        std::memcpy(added->metadata, metadata.data(), metadata.size());
        added->metadata_size = metadata.size();
    }
    std::vector<std::pair<i32, i64>> offsets() const {
        std::vector<std::pair<i32, i64>> out;
        for (int i = 0; i < list->cnt; ++i) out.emplace_back(list->elems[i].partition, list->elems[i].offset);
        return out;
    }

    rd_kafka_topic_partition_list_t *list;
};

// The question for a topic's id, on its way.
class AskedTopicId {
  public:
    AskedTopicId(rd_kafka_t *client, std::string topic);
    // The id in base64, as `kafka-topics.sh --describe` prints it; throws KafkaFailure. Once, while the client lives.
    std::string answer(int timeout_ms) const;
    const std::string &topic() const { return topic_; }

  private:
    std::string topic_;
    std::unique_ptr<rd_kafka_queue_t, void (*)(rd_kafka_queue_t *)> answers_;
};

class Client {
  public:
    virtual ~Client() = default;
    Client(const Client &) = delete;
    Client &operator=(const Client &) = delete;

    EventQueue &events() { return events_; }
    rd_kafka_t *handle() const { return handle_; }
    // Partitions of `topic`; throws KafkaFailure (an unknown topic too).
    i32 partition_count(const std::string &topic, int timeout_ms);
    AskedTopicId ask_topic_id(const std::string &topic) { return {handle_, topic}; }
    std::string topic_id(const std::string &topic, int timeout_ms) { return ask_topic_id(topic).answer(timeout_ms); }
    // (low, high) watermark; a read_committed client is given the last stable offset as high.
    std::pair<i64, i64> watermarks(const std::string &topic, i32 partition, int timeout_ms);
    // Of every partition of `topic`, as watermarks; throws KafkaFailure (an unknown topic too).
    std::vector<std::pair<i64, i64>> bounds(const std::string &topic, int timeout_ms);

  protected:
    Client() = default;
    // Makes the handle; throws std::runtime_error with librdkafka's text for a bad setting. `opaque` of the callbacks
    // is this object.
    void open(rd::Type type, const KafkaSettings &settings);

    virtual void on_configure(rd_kafka_conf_t *) {}

    const Library &kafka_ = Library::get();
    rd_kafka_t *handle_ = nullptr;
    EventQueue events_;
};

}   // namespace st
