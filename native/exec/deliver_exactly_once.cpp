#include <chrono>
#include <thread>

#include "exec/answer_delivery.h"

namespace st {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int call_ms = 2'000;                                // one call of the transactional interface
constexpr auto patience = std::chrono::milliseconds(6'000);   // transaction.timeout.ms is 5,000: then the broker aborts
constexpr auto pause = std::chrono::milliseconds(100);        // between two tries for a producer

// Calls again what may be called again.
template <class Call>
KafkaOutcome persist(Call call) {
    const Clock::time_point end = Clock::now() + patience;
    KafkaOutcome outcome = call();
    while (outcome.code && outcome.retriable && !outcome.fatal && Clock::now() < end) outcome = call();
    return outcome;
}

class ExactlyOnce final : public AnswerDelivery {
  public:
    using AnswerDelivery::AnswerDelivery;

    // The transactional.id is this process's own, so init_transactions ends what a producer before left open, and after
    // it the committed offsets say what was answered.
    bool ready() override {
        if (initialized_) return true;
        if (!producer_) producer_ = std::make_unique<Producer>(settings_);
        KafkaOutcome outcome = producer_->init_transactions(call_ms);
        initialized_ = outcome.code == rd::ok;
        if (initialized_) return true;
        note(outcome.code, "init_transactions: " + outcome.text);
        if (!outcome.retriable) drop_producer();
        std::this_thread::sleep_for(pause);
        return false;
    }

    bool deliver(const AnsweredBatch &batch) override {
        // The consumer was not polled since it gave the requests, so this is the membership they were read under.
        const GroupMetadata group = consumer_.group_metadata();
        KafkaOutcome outcome = producer_->begin_transaction();
        if (outcome.code) return undo(outcome, "begin_transaction");
        for (std::size_t i = 0; i < batch.requests.size(); ++i)
            if (int code = send(batch, i, nullptr))
                return undo({code, false, code != rd::fatal, code == rd::fatal, Library::get().err2str(code)},
                            "produce");
        outcome = persist([&] { return producer_->send_offsets(consumer_.topic(), batch.next, group, call_ms); });
        if (outcome.code) return undo(outcome, "send_offsets_to_transaction");
        outcome = persist([&] { return producer_->commit_transaction(call_ms); });
        return outcome.code ? undo(outcome, "commit_transaction") : true;
    }

  private:
    bool undo(const KafkaOutcome &outcome, const char *what) {
        note(outcome.code, std::string(what) + ": " + outcome.text);
        if (outcome.requires_abort && !outcome.fatal) {
            KafkaOutcome aborted = persist([&] { return producer_->abort_transaction(call_ms); });
            if (aborted.code == rd::ok) return false;
            note(aborted.code, "abort_transaction: " + aborted.text);
        }
        drop_producer();   // fatal, or an end nobody knows: librdkafka must not begin another transaction on it
        return false;
    }

    void drop_producer() {
        replace_producer();
        initialized_ = false;
    }

    bool initialized_ = false;
};

}   // namespace

std::unique_ptr<AnswerDelivery> deliver_exactly_once(KafkaSettings producer, std::string topic, Consumer &consumer,
                                                     EventQueue &events) {
    return std::make_unique<ExactlyOnce>(std::move(producer), std::move(topic), consumer, events);
}

}   // namespace st
