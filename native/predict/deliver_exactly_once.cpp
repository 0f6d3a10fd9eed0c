#include <chrono>
#include <thread>

#include "kafka/transaction.h"
#include "predict/answer_delivery.h"

namespace st {
namespace {

constexpr auto producer_pause = std::chrono::milliseconds(100);   // between two tries for a producer

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

// Two producers take turns: a commit is decided before its markers are written, and a transaction that the same
// producer begins before they are is sent back for 20 ms. Of two commits of one offset the group keeps the later.
// Their transactional.ids are this process's own, so after prepare() the committed offsets say what was answered.
class ExactlyOnce final : public AnswerDelivery {
  public:
    ExactlyOnce(KafkaSettings producer, std::string topic, EventQueue &events)
        : AnswerDelivery(std::move(producer), std::move(topic), events) {
        for (int lane = 0; lane < 2; ++lane) {
            KafkaSettings settings = settings_;
            for (auto &[name, value] : settings)
                if (name == "transactional.id") value += "." + std::to_string(lane);
            lanes_[lane] = std::make_unique<TransactionalProducer>(std::move(settings));
        }
    }

    bool ready() override {
        for (const Lane &lane : lanes_) {
            if (lane->prepared()) continue;
            const KafkaOutcome outcome = lane->prepare();
            if (outcome.code == rd::ok) continue;
            fail(outcome.code, outcome.text);
            std::this_thread::sleep_for(producer_pause);
            return false;
        }
        return true;
    }

    bool deliver(const AnsweredBatch &batch) override {
        TransactionalProducer &lane = *lanes_[turn_];
        Producer &producer = lane.producer();
        // The consumer was not polled since it gave the requests, so this is the membership they were read under.
        const auto group = std::make_shared<const GroupMetadata>(batch.reader.group_metadata());
        const std::string topic = batch.reader.topic();
        const KafkaOutcome begun = lane.begin();
        if (begun.code) return undone(lane.fail(begun));
        // answered while the batch is written; it goes before its producer
        auto asked = std::make_shared<const AskedTopicId>(producer.ask_topic_id(topic));
        for (std::size_t i = 0; i < batch.answers.size(); ++i)
            if (const int code = send(producer, batch, i, nullptr)) {
                asked.reset();
                return undone(lane.fail(not_queued(code, topic_)));
            }
        auto send_offsets = [topic, next = batch.next, group, id = batch.reader.identity()](Producer &of, int call_ms) {
            return of.send_offsets(topic, next, *group, call_ms, id);
        };
        auto check = [asked = std::move(asked), id = batch.reader.identity()](Producer &, int call_ms) {
            return still_is(id, *asked, call_ms);
        };
        std::vector<TransactionalProducer::Step> steps;   // moved: a list in braces would keep `asked` too long
        steps.push_back({"send_offsets_to_transaction", std::move(send_offsets)});
        steps.push_back({"the requests' topic", std::move(check)});
        const TransactionEnd end = lane.commit(std::move(steps));
        if (end.ending != Ending::committed) return undone(end);
        turn_ = 1 - turn_;
        return true;
    }

    void gather_events() override {
        for (const Lane &lane : lanes_) AnswerDelivery::gather_events(lane->drain_events());
    }

  private:
    using Lane = std::unique_ptr<TransactionalProducer>;

    bool undone(const TransactionEnd &end) {
        if (end.ending == Ending::unknown)
            for (const Lane &lane : lanes_) lane->give_up();   // the other one has lost the same connections
        fail(end.why.code, end.why.text);
        return false;
    }

    Lane lanes_[2];
    int turn_ = 0;
};

}   // namespace

std::unique_ptr<AnswerDelivery> deliver_exactly_once(KafkaSettings producer, std::string topic, EventQueue &events) {
    return std::make_unique<ExactlyOnce>(std::move(producer), std::move(topic), events);
}

}   // namespace st
