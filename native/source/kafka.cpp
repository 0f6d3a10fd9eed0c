#include "source/kafka.h"

#include <limits>
#include <map>
#include <utility>

#include "base/failpoint.h"
#include "kafka/response.h"

namespace st {

namespace {

std::vector<DeadLetterHeader> headers(const void *handle) {
    std::vector<DeadLetterHeader> found;
    for (const HeaderView &header : headers_of(static_cast<const rd_kafka_message_t *>(handle)))
        found.push_back({header.name, header.value, header.size});
    return found;
}

DeadLetterHeader header(const void *handle, const char *name) {
    const HeaderView found = header_of(static_cast<const rd_kafka_message_t *>(handle), name);
    return {found.name, found.value, found.size};
}

}  // namespace

RecordView record_of(const MessageView &message) {
    return {.value = message.null_value ? nullptr : message.value,
            .size = message.size,
            .key = message.key,
            .key_size = message.key_size,
            .partition = message.partition,
            .offset = message.offset,
            .timestamp_ms = message.timestamp_ms,
            .handle = message.handle,
            .headers = headers,
            .header = header};
}

KafkaSource::KafkaSource(Consumer &consumer, std::string topic, std::vector<std::pair<i32, i64>> end_offsets,
                         bool bounded)
    : consumer_(&consumer), topic_(std::move(topic)), end_offsets_(std::move(end_offsets)), bounded_(bounded) {}

void KafkaSource::start(const std::vector<StartPosition> &positions) {
    Consumer::Offsets offsets;
    const std::map<i32, i64> ends(end_offsets_.begin(), end_offsets_.end());
    end_of_.clear();
    open_ = 0;
    for (const StartPosition &start : positions) {
        offsets.emplace_back(start.partition, start.offset);
        const auto found = ends.find(start.partition);
        if (found == ends.end() || found->second <= start.offset) continue;
        const auto at = static_cast<std::size_t>(start.partition);
        if (at >= end_of_.size()) end_of_.resize(at + 1, 0);
        end_of_[at] = found->second;
        ++open_;
    }
    consumer_->assign(topic_, offsets);
    if (std::exchange(holds_, false) && !paused_) consumer_->resume(consumer_->assignment());
    if (paused_) pause(true);
}

void KafkaSource::add(i32 partition) { consumer_->assign_more(topic_, {{partition, 0}}); }

void KafkaSource::read_with(Consumer &consumer) {
    consumer_->release();
    consumer_ = &consumer;
}

void KafkaSource::hold(i32 partition) {
    holds_ = true;
    consumer_->pause({partition});
}

void KafkaSource::pause(bool full) {
    paused_ = full;
    const std::vector<i32> all = consumer_->assignment();
    if (full) consumer_->pause(all);
    else consumer_->resume(all);
}

// The partition is read up to `offset`; a view where that is its end.
bool KafkaSource::end(i32 partition, i64 offset, RecordView &out) {
    const i64 end = bounded_ ? end_of(partition) : 0;
    if (end == 0 || offset < end) return false;
    end_of_[static_cast<std::size_t>(partition)] = 0;
    --open_;
    out = {.partition = partition, .hole = true, .offset = end};
    return true;
}

bool KafkaSource::view(const MessageView &message, RecordView &out) {
    if (message.error == rd::partition_eof) return end(message.partition, message.offset, out);
    if (message.error != 0) {
        if (!is_passing(message.error))   // librdkafka recovers from the others by itself
            throw KafkaFailure(message.error, message.error_text ? message.error_text : "consumer error");
        return false;
    }
    if (bounded_ && message.offset >= end_of(message.partition)) return end(message.partition, message.offset, out);
    out = record_of(message);
    return true;
}

std::size_t KafkaSource::take(RecordView *out, std::size_t capacity, i64 wait_ns) {
    messages_.resize(capacity / 2);   // a message may give two views: a record, and the end behind it
    const std::size_t count =
        consumer_->consume(messages_.data(), messages_.size(), static_cast<int>(wait_ns / 1'000'000));
    ST_FAILPOINT("ingest.consumed");
    std::size_t views = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const MessageView &message = messages_[i];
        if (!view(message, out[views])) continue;
        const bool record = !out[views++].hole;
        if (bounded_ && record && end(message.partition, message.offset + 1, out[views])) ++views;
    }
    return views;
}

}  // namespace st
