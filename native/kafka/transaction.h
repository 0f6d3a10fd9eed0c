// Transactions: what follows from what librdkafka's calls say, and the one producer after another that heeds it.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kafka/producer.h"

namespace st {

// What follows from the outcome of a call, for whoever makes transactions.
enum class Next : int {
    on = 0,      // it is done
    again = 1,   // the same call on the same producer
    abort = 2,   // the transaction ends here; the same producer may begin another
    renew = 3,   // another producer; what became of the transaction only Kafka's topics and offsets say
};

// The rules. `over`: the time in which the call may be made again has passed.
Next next(const KafkaOutcome &outcome, bool over);

// The outcome of a Producer::produce() that gave `code`: what was to be written with the others is not.
KafkaOutcome not_queued(int code, const std::string &topic);

// How a transaction ended. `unknown`: it may be committed or not; the producer has been given up.
enum class Ending : int { committed = 0, aborted = 1, unknown = 2 };

struct TransactionEnd {
    Ending ending;
    KafkaOutcome why;   // of what was not committed
};

// A transactional producer, made anew when it must be. A transaction goes prepare(), begin(), producer().produce() and
// then commit(), or fail() with what one of these said. One thread.
//
// librdkafka may wait for ever for a coordinator that left the cluster and came back, whatever the time-out
// (https://github.com/confluentinc/librdkafka/issues/5456): so calls that ask one have a thread, which is left behind,
// with its producer, when it does not return. The next producer's init_transactions fences that one. How long is waited
// follows from transaction.timeout.ms: then the broker aborts the transaction, so that nothing is lost with what is
// given up.
class TransactionalProducer {
  public:
    // A call in a transaction before its commit; it owns all it touches.
    struct Step {
        const char *name;
        std::function<KafkaOutcome(Producer &producer, int timeout_ms)> call;
    };

    // Throws std::runtime_error with librdkafka's text for a bad setting.
    explicit TransactionalProducer(KafkaSettings settings);
    ~TransactionalProducer() { give_up(); }
    TransactionalProducer(const TransactionalProducer &) = delete;
    TransactionalProducer &operator=(const TransactionalProducer &) = delete;

    // Tries once for a producer that may begin, and whose name nobody else's has: code 0 when there is one. What a
    // producer before left open is aborted by then.
    KafkaOutcome prepare();
    bool prepared() const { return prepared_; }
    // Of prepare(), until fail(), commit() or give_up() have ended it; std::runtime_error where there is none.
    Producer &producer();
    int call_ms() const { return static_cast<int>(timeout_.count() / 4); }   // one call's time-out

    // Fatal where there is no producer.
    KafkaOutcome begin() { return producer_ ? producer_->begin_transaction() : none(); }
    // After the calls of `before`, one after the other.
    TransactionEnd commit(std::vector<Step> before = {});
    // Ends the transaction that `why` does not let go on.
    TransactionEnd fail(KafkaOutcome why);
    // Ends one that is not wanted any more. What is queued is sent first: a broker refuses for good to end a
    // transaction that it has not been told of, and librdkafka asks it to.
    TransactionEnd abort(std::string reason);

    // A producer's end may wait like its calls: a thread left behind keeps its own until it returns.
    void give_up();
    // What all its producers have said.
    std::vector<KafkaEvent> drain_events();

  private:
    using Clock = std::chrono::steady_clock;
    using Milliseconds = std::chrono::milliseconds;

    static KafkaOutcome none() { return {rd::state, false, false, true, "the producer has been given up"}; }
    // The first failure, each call made again for `again_for` from now.
    KafkaOutcome ask(std::vector<Step> steps, Milliseconds again_for);
    void make();
    void gather_events();

    KafkaSettings settings_;
    Milliseconds timeout_{60'000};   // librdkafka's default
    std::shared_ptr<Producer> producer_;
    Clock::time_point made_;
    bool prepared_ = false;
    EventQueue events_;
};

}   // namespace st
