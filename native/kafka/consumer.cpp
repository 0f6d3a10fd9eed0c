#include "kafka/consumer.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace st {
namespace {
// Of waiting in vain between two looks. Below the 10 s that lie between them, so that each look counts.
constexpr int deaf_after_ms = 5'000;
}

GroupMetadata GroupMetadata::parse(const std::string &bytes) {
    rd_kafka_consumer_group_metadata_t *handle = nullptr;
    KafkaOutcome outcome =
        take_outcome(Library::get().consumer_group_metadata_read(&handle, bytes.data(), bytes.size()));
    if (outcome.code) throw KafkaFailure(outcome.code, "group metadata: " + outcome.text);
    return GroupMetadata(handle);
}

std::string GroupMetadata::serialize() const {
    void *buffer = nullptr;
    std::size_t size = 0;
    KafkaOutcome outcome = take_outcome(Library::get().consumer_group_metadata_write(handle_.get(), &buffer, &size));
    if (outcome.code) throw KafkaFailure(outcome.code, "group metadata: " + outcome.text);
    std::string bytes(static_cast<const char *>(buffer), size);
    Library::get().mem_free(nullptr, buffer);
    return bytes;
}

Consumer::Consumer(const KafkaSettings &settings) {
    open(rd::consumer, settings);
    kafka_.poll_set_consumer(handle_);
    queue_ = kafka_.queue_get_consumer(handle_);
}

Consumer::~Consumer() { close(); }

void Consumer::on_configure(rd_kafka_conf_t *conf) { kafka_.conf_set_rebalance_cb(conf, on_rebalance); }

void Consumer::require_open() const {
    if (!handle_) throw std::runtime_error("this consumer is closed");
}

void Consumer::close() {
    if (!handle_) return;
    release();
    kafka_.consumer_close(handle_);
    if (queue_) kafka_.queue_destroy(queue_);
    kafka_.destroy(handle_);
    queue_ = nullptr;
    handle_ = nullptr;
}

// Called inside consume() and close(), on their thread.
void Consumer::on_rebalance(rd_kafka_t *handle, int code, rd_kafka_topic_partition_list_t *list, void *opaque) {
    auto *self = static_cast<Consumer *>(static_cast<Client *>(opaque));
    const Library &kafka = self->kafka_;
    const char *protocol = kafka.rebalance_protocol(handle);
    bool cooperative = protocol && std::strcmp(protocol, "COOPERATIVE") == 0;
    bool gives = code == rd::assign_partitions;
    KafkaOutcome outcome;
    self->forget_heard();
    if (gives) self->begin_in(list);
    if (!gives) {
        ++self->revocations_;
        if (self->on_revoke) self->on_revoke();
    }
    if (cooperative)
        outcome =
            take_outcome(gives ? kafka.incremental_assign(handle, list) : kafka.incremental_unassign(handle, list));
    else
        outcome.code = kafka.assign(handle, gives ? list : nullptr);
    if (gives && !self->reads_ && outcome.code == rd::ok) kafka.pause_partitions(handle, list);
    std::string text = gives                           ? "partitions assigned:"
                       : kafka.assignment_lost(handle) ? "partitions lost:"
                                                       : "partitions revoked:";
    for (int i = 0; i < list->cnt; ++i) text += " " + std::to_string(list->elems[i].partition);
    if (outcome.code) text += std::string(" failed: ") + kafka.err2str(outcome.code);
    self->events_.push({outcome.code ? 3 : 6, outcome.code, "REBALANCE", text});
}

// On_rebalance's caller is C: nothing may be thrown.
void Consumer::begin_in(rd_kafka_topic_partition_list_t *list) {
    if (!on_assign || !list->cnt) return;
    std::vector<i32> partitions;
    for (int i = 0; i < list->cnt; ++i) partitions.push_back(list->elems[i].partition);
    try {
        const Offsets offsets = on_assign(partitions);
        for (int i = 0; i < list->cnt; ++i) list->elems[i].offset = offsets[static_cast<std::size_t>(i)].second;
    } catch (const KafkaFailure &failure) {
        ++unsure_;
        events_.push({5, failure.code, "REBALANCE", failure.what()});
    }
}

void Consumer::assign(const std::string &topic, const Offsets &offsets) {
    require_open();
    release();
    forget_heard();
    topic_ = topic;
    PartitionList list(topic, offsets);
    check(kafka_.assign(handle_, list.list), "assign");
}

void Consumer::assign_more(const std::string &topic, const Offsets &offsets) {
    require_open();
    topic_ = topic;
    PartitionList list(topic, offsets);
    check(kafka_.incremental_assign(handle_, list.list), "assign");
}

void Consumer::subscribe(const std::string &topic, bool reads) {
    require_open();
    reads_ = reads;
    topic_ = topic;
    joins_ = true;
    PartitionList list(topic, {{rd::any_partition, rd::invalid}});
    check(kafka_.subscribe(handle_, list.list), "subscribe");
}

std::vector<i32> Consumer::assignment() const {
    require_open();
    rd_kafka_topic_partition_list_t *found = nullptr;
    check(kafka_.assignment(handle_, &found), "assignment");
    PartitionList list(found);
    std::vector<i32> partitions;
    for (auto [partition, offset] : list.offsets()) partitions.push_back(partition);
    return partitions;
}

void Consumer::drop(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) kafka_.message_destroy(messages_[i]);
}

void Consumer::release() {
    drop(held_);
    held_ = 0;
}

std::size_t Consumer::consume(MessageView *out, std::size_t capacity, int timeout_ms) {
    require_open();
    release();
    if (messages_.size() < capacity) messages_.resize(capacity);
    // A batch call returns when full or at its time-out: one message with the time-out, the others without.
    ssize_t first = capacity ? kafka_.consume_batch_queue(queue_, timeout_ms, messages_.data(), 1) : 0;
    if (first <= 0) {
        in_vain_ms_ += timeout_ms;
        return 0;
    }
    u64 before = revocations_;
    ssize_t rest = capacity > 1 ? kafka_.consume_batch_queue(queue_, 0, messages_.data() + 1, capacity - 1) : 0;
    std::size_t count = 1 + (rest > 0 ? static_cast<std::size_t>(rest) : 0);
    if (revocations_ != before) {   // some of these belong to somebody else now
        drop(count);
        dropped_ += count;
        return 0;
    }
    held_ = count;
    std::size_t given = 0;
    for (std::size_t i = 0; i < count; ++i) {
        rd_kafka_message_t *m = messages_[i];
        if (m->err == rd::group_denied && !joins_) continue;   // named for librdkafka alone
        bool failed = m->err != 0;
        if (m->err == rd::partition_eof) ends_heard_[m->partition] = m->offset;
        out[given++] = {.value = static_cast<const u8 *>(failed ? nullptr : m->payload),
                  .size = failed ? 0 : m->len,
                  .key = static_cast<const u8 *>(m->key),
                  .key_size = m->key_len,
                  .partition = m->partition,
                  .error = m->err,
                  .offset = m->offset,
                  .timestamp_ms = failed ? -1 : kafka_.message_timestamp(m, nullptr),
                  .null_value = !failed && !m->payload,
                  .error_text = failed ? kafka_.message_errstr(m) : nullptr,
                  .handle = m};
    }
    return given;
}

namespace {
Consumer::Offsets without_offsets(const std::vector<i32> &partitions) {
    Consumer::Offsets offsets;
    for (i32 partition : partitions) offsets.emplace_back(partition, rd::invalid);
    return offsets;
}
}   // namespace

void Consumer::pause(const std::vector<i32> &partitions) {
    require_open();
    PartitionList list(topic_, without_offsets(partitions));
    check(kafka_.pause_partitions(handle_, list.list), "pause");
    paused_.insert(partitions.begin(), partitions.end());
}

void Consumer::resume(const std::vector<i32> &partitions) {
    require_open();
    PartitionList list(topic_, without_offsets(partitions));
    check(kafka_.resume_partitions(handle_, list.list), "resume");
    for (i32 partition : partitions) paused_.erase(partition);
    forget_heard();
}

void Consumer::seek(const Offsets &offsets, int timeout_ms) {
    require_open();
    release();
    forget_heard();
    PartitionList list(topic_, offsets);
    check(kafka_.seek_partitions(handle_, list.list, timeout_ms), "seek");
    for (int i = 0; i < list.list->cnt; ++i) check(list.list->elems[i].err, "seek");
}

Consumer::Offsets Consumer::position(const std::vector<i32> &partitions) const {
    require_open();
    PartitionList list(topic_, without_offsets(partitions));
    check(kafka_.position(handle_, list.list), "position");
    return list.offsets();
}

Consumer::Offsets Consumer::committed(const std::vector<i32> &partitions, int timeout_ms) const {
    require_open();
    PartitionList list(topic_, without_offsets(partitions));
    check(kafka_.committed(handle_, list.list, timeout_ms), "committed");
    for (int i = 0; i < list.list->cnt; ++i) {
        rd_kafka_topic_partition_t &part = list.list->elems[i];
        check(part.err, "committed");
        std::string_view of(static_cast<const char *>(part.metadata), part.metadata_size);
        of = of.substr(0, of.find('\0'));   // confluent-kafka for Python commits the end of its C string as well
        if (!of.empty() && !identity_.empty() && of != identity_) part.offset = rd::invalid;
    }
    return list.offsets();
}

void Consumer::rewind_to_committed(i64 otherwise, int timeout_ms) {
    std::vector<i32> partitions = assignment();
    if (partitions.empty()) return;
    Offsets offsets = committed(partitions, timeout_ms);
    for (auto &[partition, offset] : offsets)
        if (offset < 0) offset = otherwise;
    seek(offsets, timeout_ms);
}

void Consumer::store_offsets(const Offsets &offsets) {
    require_open();
    PartitionList list(topic_, offsets, identity_);
    int code = kafka_.offsets_store(handle_, list.list);
    if (code != rd::state)
        check(code, "store offsets");   // state: the partition was taken away meanwhile; its new owner counts
}

void Consumer::commit(const Offsets &offsets) {
    require_open();
    PartitionList list(topic_, offsets, identity_);
    check(kafka_.commit(handle_, list.list, 0), "commit");
}

void Consumer::forget_heard() {
    held_before_.clear();
    ends_heard_.clear();
}

bool Consumer::is_deaf(int timeout_ms) {
    if (in_vain_ms_ < deaf_after_ms) return false;
    in_vain_ms_ = 0;
    bool deaf = false;
    std::vector<Held> held;
    for (auto [partition, next] : position(assignment())) {
        if (paused_.contains(partition)) continue;
        const auto end = ends_heard_.find(partition);
        const i64 heard = end == ends_heard_.end() ? next : std::max(next, end->second);
        for (const Held &before : held_before_)
            deaf |= before.partition == partition && before.heard == heard && heard < before.end;
        held.push_back({partition, heard, watermarks(topic_, partition, timeout_ms).second});
    }
    held_before_ = std::move(held);
    return deaf;
}

GroupMetadata Consumer::group_metadata() const {
    require_open();
    return GroupMetadata(kafka_.consumer_group_metadata(handle_));
}

std::vector<HeaderView> headers_of(const rd_kafka_message_t *message) {
    const Library &kafka = Library::get();
    std::vector<HeaderView> out;
    rd_kafka_headers_t *headers = nullptr;
    if (kafka.message_headers(message, &headers) != rd::ok) return out;
    const char *name;
    const void *value;
    std::size_t size;
    for (std::size_t i = 0; kafka.header_get_all(headers, i, &name, &value, &size) == rd::ok; ++i)
        out.push_back({name, static_cast<const u8 *>(value), size});
    return out;
}

HeaderView header_of(const rd_kafka_message_t *message, const char *name) {
    const Library &kafka = Library::get();
    rd_kafka_headers_t *headers = nullptr;
    const void *value = nullptr;
    std::size_t size = 0;
    if (kafka.message_headers(message, &headers) != rd::ok ||
        kafka.header_get_last(headers, name, &value, &size) != rd::ok)
        return {name, nullptr, 0};
    return {name, static_cast<const u8 *>(value), size};
}

}   // namespace st
