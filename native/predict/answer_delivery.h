// How answers and the offsets of their requests get into Kafka: exactly once or at least once. One thread.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "predict/request_scorer.h"
#include "kafka/producer.h"

namespace st {

struct AnsweredBatch {
    Consumer &reader;                      // of the requests; outlives what is done with this
    const MessageView *const *requests;
    const std::vector<Answer> &answers;    // one per request
    const Consumer::Offsets &next;         // of each partition in the batch: the offset after it
};

class AnswerDelivery {
  public:
    // `events` gets what the producers say. Those that make a producer at once throw std::runtime_error with
    // librdkafka's text for a bad setting.
    AnswerDelivery(KafkaSettings producer, std::string topic, EventQueue &events)
        : settings_(std::move(producer)), topic_(std::move(topic)), events_(events) {}
    virtual ~AnswerDelivery() = default;

    // These throw KafkaFailure for what Kafka refuses: no repetition mends it.
    // Makes a producer where one was given up. False, after a short wait: it cannot take a batch yet, call again.
    virtual bool ready() = 0;
    // False: the batch is undone, its requests must be read again from the committed offsets.
    virtual bool deliver(const AnsweredBatch &batch) = 0;
    // Takes note of what has arrived. False: as for deliver, for all that was on its way.
    virtual bool settle() { return true; }
    // Waits for what is on its way. False: not all arrived within the time.
    virtual bool finish(int) { return true; }
    virtual bool idle() const { return true; }
    // The reader of what is on its way goes, and its offsets with it.
    virtual void forget_reader() {}
    // Moves what the producers said to `events`.
    virtual void gather_events() = 0;

  protected:
    // Queues one answer; gives 0 or librdkafka's error. Waits when the producer's queue is full.
    int send(Producer &producer, const AnsweredBatch &batch, std::size_t index, void *tag);
    void gather_events(std::vector<KafkaEvent> said);
    void note(int code, const std::string &text);
    // As note(); throws KafkaFailure where no repetition mends it.
    void fail(int code, const std::string &text);

    KafkaSettings settings_;
    std::string topic_;
    EventQueue &events_;
};

// One transaction per batch, with the offsets of its requests; on any failure the batch is undone. So it is when the
// requests were not read from the topic that the reader knows: offsets of one deleted meanwhile mean nothing.
std::unique_ptr<AnswerDelivery> deliver_exactly_once(KafkaSettings producer, std::string topic, EventQueue &events);
// Offsets are stored for the background commit once all answers of a batch, and of those before it, are acknowledged.
std::unique_ptr<AnswerDelivery> deliver_at_least_once(KafkaSettings producer, std::string topic, EventQueue &events);

}   // namespace st
