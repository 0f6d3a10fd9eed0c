#include "kafka/transaction.h"

#include <charconv>
#include <system_error>
#include <thread>

#include "base/within.h"

namespace st {
namespace {

constexpr auto pause = std::chrono::milliseconds(10);   // between two tries of a call

}   // namespace

// The order is the one in which librdkafka's manual has an application ask (INTRODUCTION.md, "Transactional producer
// API: error handling").
Next next(const KafkaOutcome &outcome, bool over) {
    if (outcome.code == rd::ok) return Next::on;
    if (outcome.fatal) return Next::renew;
    if (outcome.requires_abort) return Next::abort;
    return outcome.retriable && !over ? Next::again : Next::renew;
}

KafkaOutcome not_queued(int code, const std::string &topic) {
    const bool fatal = code == rd::fatal;
    return {code, false, !fatal, fatal, topic + ": " + Library::get().err2str(code)};
}

TransactionalProducer::TransactionalProducer(KafkaSettings settings) : settings_(std::move(settings)) {
    for (const auto &[name, value] : settings_)
        if (int ms; name == "transaction.timeout.ms" &&
                    std::from_chars(value.data(), value.data() + value.size(), ms).ec == std::errc())
            timeout_ = Milliseconds(ms);   // of what is none librdkafka says so
    make();
}

void TransactionalProducer::make() {
    producer_ = std::make_shared<Producer>(settings_);
    made_ = Clock::now();
}

KafkaOutcome TransactionalProducer::prepare() {
    if (prepared_) return {};
    if (!producer_) make();
    const auto init = [](Producer &producer, int timeout_ms) { return producer.init_transactions(timeout_ms); };
    KafkaOutcome outcome = ask({{"init_transactions", init}}, Milliseconds(0));
    const Next then = next(outcome, Clock::now() - made_ >= timeout_);
    prepared_ = then == Next::on;
    if (then > Next::again) give_up();
    return outcome;
}

Producer &TransactionalProducer::producer() {
    if (!producer_) throw std::runtime_error("a transactional producer: expected prepare() before, found it given up");
    return *producer_;
}

TransactionEnd TransactionalProducer::commit(std::vector<Step> before) {
    const auto commit = [](Producer &producer, int timeout_ms) { return producer.commit_transaction(timeout_ms); };
    before.push_back({"commit_transaction", commit});
    KafkaOutcome outcome = ask(std::move(before), timeout_);
    if (outcome.code == rd::ok) return {Ending::committed, {}};
    return fail(std::move(outcome));
}

TransactionEnd TransactionalProducer::abort(std::string reason) {
    if (producer_) producer_->flush(call_ms());
    return fail({rd::inconsistent, false, true, false, std::move(reason)});
}

TransactionEnd TransactionalProducer::fail(KafkaOutcome why) {
    if (next(why, true) == Next::abort) {
        const auto abort = [](Producer &producer, int timeout_ms) { return producer.abort_transaction(timeout_ms); };
        const KafkaOutcome aborted = ask({{"abort_transaction", abort}}, timeout_);
        if (aborted.code == rd::ok) return {Ending::aborted, std::move(why)};
        why.text += "; " + aborted.text;
    }
    give_up();
    return {Ending::unknown, std::move(why)};
}

KafkaOutcome TransactionalProducer::ask(std::vector<Step> steps, Milliseconds again_for) {
    if (!producer_) return none();
    const std::string last = steps.back().name;
    auto task = [producer = producer_, steps = std::move(steps), again_for, timeout_ms = call_ms()] {
        const auto until = Clock::now() + again_for;
        for (const Step &step : steps)
            while (true) {
                KafkaOutcome outcome = step.call(*producer, timeout_ms);
                const Next then = next(outcome, Clock::now() >= until);
                if (then == Next::on) break;
                if (then != Next::again) {
                    producer->poll(0);   // serves the error callback, which says why
                    outcome.text = std::string(step.name) + ": " + outcome.text;
                    return outcome;
                }
                std::this_thread::sleep_for(pause);
            }
        return KafkaOutcome{};
    };
    try {
        const auto outcome = within(timeout_ * 3 / 2, std::move(task));
        return outcome.value_or(KafkaOutcome{rd::timed_out, false, false, true, last + ": did not return"});
    } catch (const std::system_error &error) {
        return {rd::fail, false, false, true, last + ": no thread for it could be started: " + error.what()};
    }
}

void TransactionalProducer::give_up() {
    prepared_ = false;
    if (!producer_) return;
    gather_events();
    try {
        within(Milliseconds(call_ms()), [producer = std::move(producer_)] { return true; });
    } catch (const std::system_error &) {   // no thread could be started: it has ended in this one
    }
}

void TransactionalProducer::gather_events() {
    for (KafkaEvent &event : producer_->events().drain()) events_.push(std::move(event));
}

std::vector<KafkaEvent> TransactionalProducer::drain_events() {
    if (producer_) gather_events();
    return events_.drain();
}

}   // namespace st
