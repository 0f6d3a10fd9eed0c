#include <chrono>
#include <thread>

#include "base/within.h"
#include "predict/answer_delivery.h"

namespace st {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;
constexpr auto pause = Milliseconds(100);        // between two tries for a producer
constexpr auto short_pause = Milliseconds(10);   // between two tries of a call

KafkaOutcome named(const char *name, KafkaOutcome outcome) {
    outcome.text = std::string(name) + ": " + outcome.text;
    return outcome;
}

// Whether a topic, asked after its records were read, has the id that it had before: then they are of the topic with
// that id, for no id comes again. Otherwise the transaction is to be aborted; without an answer, with its producer,
// which may have gone deaf.
KafkaOutcome still_is(const std::string &id, const AskedTopicId &asked, int timeout_ms) {
    try {
        if (asked.answer(timeout_ms) == id) return {};
        return {rd::inconsistent, false, true, false, asked.topic() + " was deleted and made again"};
    } catch (const KafkaFailure &failure) {
        return {failure.code, false, failure.code != rd::timed_out, false, failure.what()};
    }
}

// How long is waited for librdkafka. After transaction.timeout.ms the broker aborts the transaction, so that nothing is
// lost with what is given up then.
class Patience {
  public:
    explicit Patience(const KafkaSettings &settings) {
        for (const auto &[name, value] : settings)
            if (name == "transaction.timeout.ms") timeout_ = Milliseconds(std::stoi(value));
    }

    int call_ms() const { return static_cast<int>(timeout_.count() / 4); }   // one call's time-out
    Milliseconds task() const { return timeout_ * 3 / 2; }                   // of a task's calls, one by one

    // Calls again what may be called again, in a task that began at `begin`.
    template <class Call>
    KafkaOutcome persist(Clock::time_point begin, Call call) const {
        while (true) {
            KafkaOutcome outcome = call(call_ms());
            const bool over = Clock::now() - begin >= timeout_;
            if (outcome.code == rd::ok || !outcome.retriable || outcome.fatal || over) return outcome;
            std::this_thread::sleep_for(short_pause);
        }
    }

  private:
    Milliseconds timeout_{60'000};   // librdkafka's default
};

class ExactlyOnce final : public AnswerDelivery {
  public:
    ExactlyOnce(KafkaSettings producer, std::string topic, EventQueue &events)
        : AnswerDelivery(std::move(producer), std::move(topic), events), patience_(settings_) {
        for (Lane &lane : lanes_) {
            lane.settings = settings_;
            for (auto &[name, value] : lane.settings)
                if (name == "transactional.id") value += "." + std::to_string(&lane - lanes_);
            lane.producer = std::make_shared<Producer>(lane.settings);
        }
    }

    ~ExactlyOnce() override {
        for (Lane &lane : lanes_) give_up(lane);
    }

    // The transactional.ids are this process's own, so init_transactions ends what a producer before left open, and
    // after it the committed offsets say what was answered.
    bool ready() override {
        for (Lane &lane : lanes_) {
            if (lane.initialized) continue;
            if (!lane.producer) lane.producer = std::make_shared<Producer>(lane.settings);
            const KafkaOutcome outcome =
                ask(lane, "init_transactions", [call_ms = patience_.call_ms()](Producer &producer) {
                    return producer.init_transactions(call_ms);
                });
            lane.initialized = outcome.code == rd::ok;
            if (lane.initialized) continue;
            if (!outcome.retriable) give_up(lane);
            fail(outcome.code, outcome.text);
            std::this_thread::sleep_for(pause);
            return false;
        }
        return true;
    }

    bool deliver(const AnsweredBatch &batch) override {
        Lane &lane = lanes_[turn_];
        // The consumer was not polled since it gave the requests, so this is the membership they were read under.
        const auto group = std::make_shared<const GroupMetadata>(batch.reader.group_metadata());
        AskedTopicId asked = lane.producer->ask_topic_id(batch.reader.topic());   // answered while the batch is written
        const KafkaOutcome begun = lane.producer->begin_transaction();
        if (begun.code) return undo(lane, named("begin_transaction", begun));
        for (std::size_t i = 0; i < batch.answers.size(); ++i)
            if (int code = send(*lane.producer, batch, i, nullptr)) {
                const bool fatal = code == rd::fatal;
                return undo(lane, named("produce", {code, false, !fatal, fatal, Library::get().err2str(code)}));
            }
        auto end = [patience = patience_, group, topic = batch.reader.topic(), next = batch.next,
                    id = batch.reader.identity(), asked = std::move(asked)](Producer &producer) {
            const auto begin = Clock::now();
            const KafkaOutcome sent = patience.persist(
                begin, [&](int call_ms) { return producer.send_offsets(topic, next, *group, call_ms, id); });
            if (sent.code) return sent;
            const KafkaOutcome same = still_is(id, asked, patience.call_ms());
            if (same.code) return same;
            return patience.persist(begin, [&](int call_ms) { return producer.commit_transaction(call_ms); });
        };
        const KafkaOutcome outcome = ask(lane, "send_offsets_to_transaction, commit_transaction", std::move(end));
        if (outcome.code) return undo(lane, outcome);
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

    // librdkafka may wait for ever for a coordinator that left the cluster and came back, whatever the time-out
    // (https://github.com/confluentinc/librdkafka/issues/5456): so what asks one has a thread, which is left behind,
    // with its producer, when it does not return. The new producer's init_transactions fences that one.
    template <class Task>
    KafkaOutcome ask(const Lane &lane, const char *what, Task task) {
        auto owned = [producer = lane.producer, task = std::move(task)] { return task(*producer); };
        const auto outcome = within(patience_.task(), std::move(owned));
        return named(what, outcome.value_or(KafkaOutcome{rd::timed_out, false, false, true, "did not return"}));
    }

    bool undo(Lane &lane, const KafkaOutcome &outcome) {
        end(lane, outcome);
        fail(outcome.code, outcome.text);
        return false;
    }

    // What is left of the transaction that failed.
    void end(Lane &lane, const KafkaOutcome &outcome) {
        if (outcome.requires_abort && !outcome.fatal) {
            const KafkaOutcome aborted = ask(lane, "abort_transaction", [patience = patience_](Producer &producer) {
                return patience.persist(Clock::now(),
                                        [&](int call_ms) { return producer.abort_transaction(call_ms); });
            });
            if (aborted.code == rd::ok) return;
            note(aborted.code, aborted.text);
        }
        // Fatal, or an end nobody knows: librdkafka must not begin another transaction on it. The other one has lost
        // the same connections.
        for (Lane &each : lanes_) give_up(each);
    }

    // A producer's end may wait like its calls. A thread left behind keeps its own until it returns.
    void give_up(Lane &lane) {
        lane.initialized = false;
        if (!lane.producer) return;
        AnswerDelivery::gather_events(lane.producer.get());
        within(Milliseconds(patience_.call_ms()), [producer = std::move(lane.producer)] { return true; });
    }

    const Patience patience_;
    Lane lanes_[2];
    int turn_ = 0;
};

}   // namespace

std::unique_ptr<AnswerDelivery> deliver_exactly_once(KafkaSettings producer, std::string topic, EventQueue &events) {
    return std::make_unique<ExactlyOnce>(std::move(producer), std::move(topic), events);
}

}   // namespace st
