// The predictor's loop: a batch of requests is consumed, scored and answered, then the next. One thread runs it;
// serve(), counters() and drain_events() may be called by others.
#pragma once
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "predict/answer_delivery.h"
#include "predict/held_scorers.h"
#include "predict/traced.h"

namespace st {

struct PredictorSettings {
    KafkaSettings consumer, producer;
    std::string requests, predictions;   // topics
    bool exactly_once = true;
    bool traced = false;      // gather the requests whose client traces them
    bool until_end = false;   // finish where the requests topic ended at the first run()
};

struct PredictorCounters {
    u64 requests = 0, rows = 0;   // answered, predicted
    u64 errors = 0;               // requests of which no row could be answered
    u64 row_errors = 0;           // rows answered with an error, in any request
    u64 batches = 0;
    u64 rewinds = 0;              // returns to the committed offsets after something failed
    i64 newest_request_ms = -1;   // timestamp of the newest request answered
    u64 waiting = 0;              // partitions whose next request needs a schema that is not known yet
};

class Predictor {
  public:
    explicit Predictor(PredictorSettings settings);
    ~Predictor();

    // Predicts with these from the next batch on, in the place of those before. Until the first requests wait in their
    // topic. Throws as HeldScorers.
    void serve(std::vector<HeldScorers::Named> scorers);
    // Works for about `milliseconds`, longer while Kafka is not answering. True: until_end has been reached. Throws
    // KafkaFailure for what Kafka refuses, and when a bounded run's topic was made again (rd::inconsistent).
    bool run(int milliseconds);
    // Between two run()s: what waits for a schema is looked at again.
    void look_again() { again_ = true; }
    // Waits for answers on their way. False: not all arrived within the time. Throws as run() does.
    bool finish(int timeout_ms) { return delivery_->finish(timeout_ms); }
    // Waits for answers on their way, commits their offsets and leaves the group. False: not all arrived in time.
    bool close(int timeout_ms);

    PredictorCounters counters() const;
    // Between two run()s: the traced requests that were answered.
    TracedRequests &traced() { return traced_; }
    std::vector<KafkaEvent> drain_events() { return events_.drain(); }

  private:
    using Clock = std::chrono::steady_clock;

    bool take_newest(int milliseconds);
    void start();
    Consumer::Offsets begin_in(const std::vector<i32> &partitions);
    void look_at_topic();
    void learn_identity();
    void make_consumer();
    bool others_are_answered();
    void renew();
    bool rewind();
    void return_to_waiting();
    void put_off(std::size_t request);
    void tell_waiting();
    void take_batch();
    void sort_out(std::size_t count);
    bool answer();
    bool deliver(std::size_t first, const std::map<i32, i64> &next);
    std::map<i32, i64> next_after(std::size_t first, std::size_t count) const;
    bool reached_ends();
    void leave();
    void gather_events();
    void note(int code, const std::string &text);

    PredictorSettings settings_;
    TracedRequests traced_;
    EventQueue events_;
    std::unique_ptr<Consumer> consumer_;
    std::unique_ptr<AnswerDelivery> delivery_;
    std::unique_ptr<HeldScorers> scorers_;

    mutable std::mutex mutex_;   // newest_, counters_
    std::condition_variable served_;
    std::unique_ptr<HeldScorers> newest_;
    PredictorCounters counters_;

    bool started_ = false, must_rewind_ = false, again_ = false;
    bool must_renew_ = false;   // the consumer
    std::string bound_to_;      // the id of the topic that a bounded run began with
    u64 dropped_ = 0, unsure_ = 0;
    int silences_ = 0;             // questions of the consumer's without an answer, one after the other
    Clock::time_point compared_{};   // with another client
    Clock::time_point looked_{};   // at the requests topic
    std::vector<MessageView> views_;
    std::vector<const MessageView *> requests_;   // of views_
    std::vector<RecordView> records_;   // the same
    std::vector<Answer> answers_;
    std::map<i32, i64> next_;   // after the batch at hand
    std::map<i32, i64> done_;   // answered up to here, by partition
    std::map<i32, i64> waiting_;   // by partition: the request that needs a schema; nothing from there on is answered
    std::optional<std::map<i32, i64>> ends_;   // until_end
    Clock::time_point ends_checked_{};
};

}   // namespace st
