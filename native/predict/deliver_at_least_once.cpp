#include <chrono>
#include <deque>
#include <thread>

#include "predict/answer_delivery.h"

namespace st {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int queued_answers = 8'000;   // half of librdkafka's queue; more are not taken in before some have arrived

class AtLeastOnce final : public AnswerDelivery {
  public:
    AtLeastOnce(KafkaSettings producer, std::string topic, EventQueue &events)
        : AnswerDelivery(std::move(producer), std::move(topic), events) {
        make_producer();
    }

    bool ready() override {
        if (!producer_) make_producer();
        if (producer_->waiting() < queued_answers) return true;
        producer_->poll(10);
        return false;
    }

    bool deliver(const AnsweredBatch &batch) override {
        // A deque: the others, and this one from now on, stay in place.
        in_flight_.push_back({0, rd::ok, &batch.reader, batch.next});
        InFlight &own = in_flight_.back();
        for (std::size_t i = 0; i < batch.answers.size(); ++i) {
            ++own.outstanding;
            if (int code = send(*producer_, batch, i, &own)) return forget("produce", code);
        }
        return settle();
    }

    bool settle() override {
        if (!producer_) return true;
        producer_->poll(0);
        for (; !in_flight_.empty() && in_flight_.front().outstanding == 0; in_flight_.pop_front()) {
            if (const int code = in_flight_.front().failed) return forget("delivery", code);
            if (Consumer *reader = in_flight_.front().reader) reader->store_offsets(in_flight_.front().next);
        }
        return true;
    }

    bool finish(int timeout_ms) override {
        const Clock::time_point end = Clock::now() + std::chrono::milliseconds(timeout_ms);
        while (producer_ && producer_->waiting() && Clock::now() < end) producer_->flush(100);
        return settle() && idle();
    }

    bool idle() const override { return in_flight_.empty(); }
    void forget_reader() override {
        for (InFlight &batch : in_flight_) batch.reader = nullptr;
    }
    void gather_events() override {
        if (producer_) AnswerDelivery::gather_events(producer_->events().drain());
    }

  private:
    struct InFlight {
        u64 outstanding;
        int failed;         // the error of an answer, or 0
        Consumer *reader;   // null: gone
        Consumer::Offsets next;
    };

    void make_producer() {
        producer_ = std::make_unique<Producer>(settings_);
        producer_->on_delivery = [](const rd_kafka_message_t &message) {
            auto *batch = static_cast<InFlight *>(message.opaque);
            --batch->outstanding;
            if (message.err) batch->failed = message.err;
        };
    }

    bool forget(const char *what, int code) {
        gather_events();
        producer_.reset();   // before the batches its deliveries point to
        in_flight_.clear();
        fail(code, std::string(what) + ": " + Library::get().err2str(code));
        return false;
    }

    std::unique_ptr<Producer> producer_;
    std::deque<InFlight> in_flight_;
};

}   // namespace

std::unique_ptr<AnswerDelivery> deliver_at_least_once(KafkaSettings producer, std::string topic, EventQueue &events) {
    return std::make_unique<AtLeastOnce>(std::move(producer), std::move(topic), events);
}

}   // namespace st
