#include "predict/predictor.h"

#include <algorithm>
#include <thread>

#include "base/within.h"
#include "kafka/response.h"
#include "source/kafka.h"

namespace st {
namespace {
constexpr u32 batch_requests = 4096;   // scored together at most
constexpr int poll_ms = 20;        // wait for the first request of a batch
constexpr int query_ms = 2'000;    // committed offsets, ends
constexpr int revoke_ms = 5'000;   // answers on their way when a rebalance takes partitions
constexpr auto leave_limit = std::chrono::milliseconds(5'000);   // a group whose coordinator is away
constexpr auto check_ends_every = std::chrono::milliseconds(300);
constexpr int deaf_silences = 2;
constexpr auto look_every = std::chrono::seconds(10);
constexpr auto predictor_pause = std::chrono::milliseconds(100);
}   // namespace

Predictor::Predictor(PredictorSettings settings)
    : settings_(std::move(settings)), views_(batch_requests) {
    auto make = settings_.exactly_once ? deliver_exactly_once : deliver_at_least_once;
    delivery_ = make(settings_.producer, settings_.predictions, events_);
    make_consumer();
}

Predictor::~Predictor() { leave(); }

void Predictor::make_consumer() {
    consumer_ = std::make_unique<Consumer>(settings_.consumer);
    consumer_->on_revoke = [this] {
        must_rewind_ |= !waiting_.empty();
        try {   // librdkafka's thread, which takes no exception
            if (!delivery_->finish(revoke_ms)) note(0, "partitions taken away before all answers had arrived");
        } catch (const KafkaFailure &) {   // comes again with the next answer
        }
    };
    consumer_->on_assign = [this](const std::vector<i32> &partitions) { return begin_in(partitions); };
    dropped_ = unsure_ = 0;
}

// librdkafka closes a consumer that has offsets to commit no sooner than a coordinator has taken them.
void Predictor::leave() {
    if (!consumer_) return;
    delivery_->forget_reader();
    consumer_->on_revoke = nullptr;   // both ask this object, which may be gone before the consumer
    consumer_->on_assign = nullptr;
    within(leave_limit, [consumer = std::move(consumer_)] {
        consumer->close();   // commits the offsets stored for at least once
        return true;
    });
}

void Predictor::note(int code, const std::string &text) { events_.push({4, code, "PREDICT", text}); }

void Predictor::serve(std::vector<HeldScorers::Named> scorers) {
    auto held = std::make_unique<HeldScorers>(std::move(scorers));
    {
        std::lock_guard lock(mutex_);
        newest_.swap(held);
    }
    served_.notify_all();
    // What was there before, if never taken, is freed here, outside the lock.
}

bool Predictor::take_newest(int milliseconds) {
    std::unique_lock lock(mutex_);
    if (!scorers_)
        served_.wait_for(lock, std::chrono::milliseconds(milliseconds), [this] { return newest_ != nullptr; });
    std::unique_ptr<HeldScorers> before;
    if (newest_) before = std::exchange(scorers_, std::move(newest_));
    lock.unlock();   // before the old ones are freed
    return scorers_ != nullptr;
}

PredictorCounters Predictor::counters() const {
    std::lock_guard lock(mutex_);
    return counters_;
}

bool Predictor::run(int milliseconds) {
    const Clock::time_point end = Clock::now() + std::chrono::milliseconds(milliseconds);
    bool finished = false;
    if (take_newest(milliseconds)) {
        do {
            try {
                must_rewind_ |= !delivery_->settle();
                look_at_topic();
                if (must_renew_) renew();
                if (!started_) start();
                if (!delivery_->ready() || (must_rewind_ && !rewind())) continue;
                if (again_) return_to_waiting();
                take_newest(0);
                take_batch();
                finished = settings_.until_end && reached_ends();
            } catch (const KafkaFailure &failure) {   // Kafka does not answer: wait for it
                if (failure.code == rd::inconsistent || response_to(failure.code) >= Response::refuse) throw;
                note(failure.code, failure.what());
                must_renew_ |= failure.code == rd::timed_out && ++silences_ >= deaf_silences && others_are_answered();
                std::this_thread::sleep_for(predictor_pause);
            }
        } while (!finished && Clock::now() < end);
    }
    gather_events();
    return finished;
}

// Joins the group; with until_end the ends are those of this moment.
void Predictor::start() {
    learn_identity();
    if (settings_.until_end && !ends_) {
        std::map<i32, i64> ends;
        i32 partition = 0;
        for (auto [low, high] : consumer_->bounds(settings_.requests, query_ms)) {
            if (high > low) ends[partition] = high;
            ++partition;
        }
        ends_ = std::move(ends);
    }
    consumer_->subscribe(settings_.requests);
    started_ = true;
}

// A new consumer in the place of one that is of no use. What it keeps of a topic is of that topic alone: offsets to
// commit, where the partitions begin and end.
void Predictor::renew() {
    consumer_->release();
    for (KafkaEvent &event : consumer_->events().drain()) events_.push(std::move(event));
    leave();
    make_consumer();
    done_.clear();
    must_renew_ = must_rewind_ = started_ = false;
    waiting_.clear();
    tell_waiting();
    std::lock_guard lock(mutex_);
    ++counters_.rewinds;
}

// Offsets are kept by the topic's name. Those of a topic that was deleted, and committed after another of that name was
// made, would pass over the new one's requests.
Consumer::Offsets Predictor::begin_in(const std::vector<i32> &partitions) {
    learn_identity();
    Consumer::Offsets offsets = consumer_->committed(partitions, query_ms);
    for (auto &[partition, offset] : offsets)
        if (offset < 0) offset = rd::beginning;
    return offsets;
}

void Predictor::learn_identity() {
    std::string id = consumer_->topic_id(settings_.requests, query_ms);
    looked_ = Clock::now();
    silences_ = 0;
    if (settings_.until_end) {   // its ends are those of one topic, whichever consumer reads it
        if (bound_to_.empty()) bound_to_ = id;
        if (id != bound_to_) throw KafkaFailure(rd::inconsistent, settings_.requests + ": deleted and made again");
    }
    if (consumer_->identity().empty()) return consumer_->set_identity(std::move(id));
    must_renew_ |= id != consumer_->identity();
}

// Made again between two looks of librdkafka's, a topic has the same name and partitions: no rebalance tells it. Nor
// does a consumer say that it has gone deaf.
void Predictor::look_at_topic() {
    if (!started_ || Clock::now() - looked_ < look_every) return;
    looked_ = Clock::now();   // where this throws, requests go on as long as there are any
    learn_identity();
    if (!consumer_->is_deaf(query_ms)) return;
    note(0, "the consumer hears nothing of what there is; another takes its place");
    must_renew_ = true;
}

// Whether a client made anew gets the answers that the consumer lacks. One that waits with all others for a broker is
// not deaf.
bool Predictor::others_are_answered() {
    if (Clock::now() - compared_ < look_every) return false;
    compared_ = Clock::now();
    try {
        Consumer other(settings_.consumer);
        other.assign(settings_.requests, {});
        other.topic_id(settings_.requests, query_ms);
        other.committed({0}, query_ms);
    } catch (const KafkaFailure &) {
        return false;
    }
    note(0, "the consumer gets no answers, others do; another takes its place");
    return true;
}

bool Predictor::rewind() {
    // A rebalance is served inside consume(), and committed offsets are not given out before it is. What is taken here
    // is taken again.
    consumer_->consume(views_.data(), views_.size(), 0);
    consumer_->release();
    dropped_ = consumer_->dropped();
    unsure_ = consumer_->unsure();
    learn_identity();
    if (must_renew_) return false;
    consumer_->rewind_to_committed(rd::beginning, query_ms);
    must_rewind_ = false;
    done_.clear();
    waiting_.clear();
    tell_waiting();
    std::lock_guard lock(mutex_);
    ++counters_.rewinds;
    return true;
}

// Partitions that go on are read on where they are.
void Predictor::return_to_waiting() {
    again_ = false;
    if (waiting_.empty()) return;
    must_rewind_ = true;   // unless this comes to its end
    consumer_->seek({waiting_.begin(), waiting_.end()}, query_ms);
    waiting_.clear();
    must_rewind_ = false;
    tell_waiting();
}

void Predictor::tell_waiting() {
    std::lock_guard lock(mutex_);
    counters_.waiting = waiting_.size();
}

void Predictor::take_batch() {
    std::size_t count = consumer_->consume(views_.data(), views_.size(), poll_ms);
    if (settings_.traced) traced_.begin();
    if (must_renew_ || must_rewind_) return;   // learned in a rebalance
    if (consumer_->dropped() != dropped_ || consumer_->unsure() != unsure_) {
        dropped_ = consumer_->dropped();
        unsure_ = consumer_->unsure();
        must_rewind_ = true;
        return;
    }
    sort_out(count);
    bool answered = next_.empty() || answer();
    consumer_->release();
    must_rewind_ |= !answered;
}

// Requests, ends of partitions and errors of the batch.
void Predictor::sort_out(std::size_t count) {
    requests_.clear();
    records_.clear();
    next_.clear();
    for (std::size_t i = 0; i < count; ++i) {
        const MessageView &view = views_[i];
        if (!waiting_.empty() && waiting_.contains(view.partition) && (!view.error || view.error == rd::partition_eof))
            continue;   // comes again
        if (view.error == rd::ok) {
            requests_.push_back(&view);
            records_.push_back(record_of(view));
            next_[view.partition] = view.offset + 1;
        } else if (view.error == rd::partition_eof) {
            // Behind the last request there may be control records; a bounded run's offsets go past them.
            if (settings_.until_end && view.offset > done_[view.partition]) next_[view.partition] = view.offset;
        } else {
            if (view.error == rd::fatal || response_to(view.error) >= Response::refuse)
                throw KafkaFailure(view.error, settings_.requests + ": " + view.error_text);
            note(view.error, view.error_text);
        }
    }
}

// All of the batch, in as many parts as its answers' size asks for.
bool Predictor::answer() {
    std::size_t first = 0;
    do {
        const std::size_t rest = requests_.size() - first;
        const std::size_t count = rest ? scorers_->score(settings_.requests, &records_[first], rest, answers_) : 0;
        answers_.resize(count);
        if (rest && scorers_->waits()) put_off(first + count);
        if (count == 0 && next_.empty()) return true;
        if (!deliver(first, first + count == requests_.size() ? next_ : next_after(first, count))) return false;
        first += count;
    } while (first < requests_.size());
    return true;
}

// This request, and what comes after it in its partition, waits for its schema.
void Predictor::put_off(std::size_t request) {
    const i32 partition = requests_[request]->partition;
    waiting_[partition] = requests_[request]->offset;
    next_.erase(partition);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
        const bool is_its_own = requests_[i]->partition == partition;
        if (is_its_own && i >= request) continue;
        if (is_its_own) next_[partition] = requests_[i]->offset + 1;
        requests_[kept] = requests_[i];
        records_[kept++] = records_[i];
    }
    requests_.resize(kept);
    records_.resize(kept);
    tell_waiting();
}

std::map<i32, i64> Predictor::next_after(std::size_t first, std::size_t count) const {
    std::map<i32, i64> next;
    for (std::size_t i = first; i < first + count; ++i) next[requests_[i]->partition] = requests_[i]->offset + 1;
    return next;
}

// `answers_` belong to the requests from `first` on; afterwards the offsets are `next`.
bool Predictor::deliver(std::size_t first, const std::map<i32, i64> &next) {
    const Consumer::Offsets offsets(next.begin(), next.end());
    const MessageView *const *requests = requests_.data() + first;
    const AnsweredBatch batch{*consumer_, requests, answers_, offsets};
    if (!delivery_->deliver(batch)) return false;
    for (auto [partition, offset] : next) done_[partition] = offset;
    if (settings_.traced) {
        const i64 now_ns = nanoseconds_since_1970();
        for (std::size_t i = 0; i < answers_.size(); ++i) traced_.add(records_[first + i], answers_[i], now_ns);
    }
    std::lock_guard lock(mutex_);
    ++counters_.batches;
    counters_.requests += answers_.size();
    for (std::size_t i = 0; i < answers_.size(); ++i) {
        counters_.rows += answers_[i].rows;
        counters_.errors += !answers_[i].error.empty();
        counters_.row_errors += answers_[i].errors;
        counters_.newest_request_ms = std::max(counters_.newest_request_ms, requests[i]->timestamp_ms);
    }
    return true;
}

// Each partition was answered to its end, here or, by the group's offsets, by another member.
bool Predictor::reached_ends() {
    if (must_rewind_ || !delivery_->idle()) return false;
    std::vector<i32> open;
    for (auto [partition, end] : *ends_) {
        auto found = done_.find(partition);
        if (found == done_.end() || found->second < end) open.push_back(partition);
    }
    if (open.empty()) return true;
    if (Clock::now() - ends_checked_ < check_ends_every) return false;
    ends_checked_ = Clock::now();
    for (auto [partition, offset] : consumer_->committed(open, query_ms))
        if (offset < ends_->at(partition)) return false;
    return true;
}

void Predictor::gather_events() {
    delivery_->gather_events();
    for (KafkaEvent &event : consumer_->events().drain()) events_.push(std::move(event));
}

bool Predictor::close(int timeout_ms) {
    bool arrived = false;
    try {
        arrived = delivery_->finish(timeout_ms);
    } catch (const KafkaFailure &) {   // noted
    }
    gather_events();
    leave();
    return arrived;
}

}   // namespace st
