#include <chrono>
#include <future>
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
    ExactlyOnce(KafkaSettings producer, std::string topic, Consumer &consumer, EventQueue &events)
        : AnswerDelivery(std::move(producer), std::move(topic), consumer, events) {
        for (Lane &lane : lanes_) {
            lane.settings = settings_;
            for (auto &[name, value] : lane.settings)
                if (name == "transactional.id") value += "." + std::to_string(&lane - lanes_);
            lane.producer = std::make_shared<Producer>(lane.settings);
        }
    }

    // The transactional.ids are this process's own, so init_transactions ends what a producer before left open, and
    // after it the committed offsets say what was answered.
    bool ready() override {
        for (Lane &lane : lanes_) {
            if (lane.initialized) continue;
            if (!lane.producer) lane.producer = std::make_shared<Producer>(lane.settings);
            KafkaOutcome outcome = lane.producer->init_transactions(call_ms);
            lane.initialized = outcome.code == rd::ok;
            if (lane.initialized) continue;
            note(outcome.code, "init_transactions: " + outcome.text);
            if (!outcome.retriable) give_up(lane);
            std::this_thread::sleep_for(pause);
            return false;
        }
        return true;
    }

    bool deliver(const AnsweredBatch &batch) override {
        Lane &lane = lanes_[turn_];
        Producer &producer = *lane.producer;
        // The consumer was not polled since it gave the requests, so this is the membership they were read under.
        const auto group = std::make_shared<const GroupMetadata>(consumer_.group_metadata());
        KafkaOutcome outcome = producer.begin_transaction();
        if (outcome.code) return undo(lane, outcome, "begin_transaction");
        for (std::size_t i = 0; i < batch.requests.size(); ++i)
            if (int code = send(producer, batch, i, nullptr))
                return undo(lane, {code, false, code != rd::fatal, code == rd::fatal, Library::get().err2str(code)},
                            "produce");
        outcome = send_offsets(lane, batch.next, group);
        if (outcome.code) return undo(lane, outcome, "send_offsets_to_transaction");
        outcome = persist([&] { return producer.commit_transaction(call_ms); });
        if (outcome.code) return undo(lane, outcome, "commit_transaction");
        turn_ = 1 - turn_;
        return true;
    }

    void gather_events() override {
        for (Lane &lane : lanes_) AnswerDelivery::gather_events(lane.producer.get());
    }

  private:
    // Two producers take turns: a commit is decided before its markers are written, and a transaction that the same
    // producer begins before they are is sent back for 20 ms. Of two commits of one offset the group keeps the later.
    struct Lane {
        KafkaSettings settings;
        std::shared_ptr<Producer> producer;
        bool initialized = false;
    };

    // librdkafka may wait for ever for a group coordinator that left the cluster and came back, whatever the time-out
    // (https://github.com/confluentinc/librdkafka/issues/5456): so the call has a thread of its own, which is left
    // behind, with its producer, when it does not return. The new producer's init_transactions fences that one.
    KafkaOutcome send_offsets(Lane &lane, const Consumer::Offsets &next, std::shared_ptr<const GroupMetadata> group) {
        auto answer = std::make_shared<std::promise<KafkaOutcome>>();
        std::future<KafkaOutcome> outcome = answer->get_future();
        std::thread([answer, group, next, producer = lane.producer, topic = consumer_.topic()] {
            answer->set_value(persist([&] { return producer->send_offsets(topic, next, *group, call_ms); }));
        }).detach();
        if (outcome.wait_for(patience + std::chrono::milliseconds(call_ms)) == std::future_status::ready)
            return outcome.get();
        return {rd::timed_out, false, false, true, "did not return"};
    }

    bool undo(Lane &lane, const KafkaOutcome &outcome, const char *what) {
        note(outcome.code, std::string(what) + ": " + outcome.text);
        if (outcome.requires_abort && !outcome.fatal) {
            KafkaOutcome aborted = persist([&] { return lane.producer->abort_transaction(call_ms); });
            if (aborted.code == rd::ok) return false;
            note(aborted.code, "abort_transaction: " + aborted.text);
        }
        // Fatal, or an end nobody knows: librdkafka must not begin another transaction on it. The other one has lost
        // the same connections.
        for (Lane &each : lanes_) give_up(each);
        return false;
    }

    void give_up(Lane &lane) {
        AnswerDelivery::gather_events(lane.producer.get());
        lane.producer.reset();
        lane.initialized = false;
    }

    Lane lanes_[2];
    int turn_ = 0;
};

}   // namespace

std::unique_ptr<AnswerDelivery> deliver_exactly_once(KafkaSettings producer, std::string topic, Consumer &consumer,
                                                     EventQueue &events) {
    return std::make_unique<ExactlyOnce>(std::move(producer), std::move(topic), consumer, events);
}

}   // namespace st
