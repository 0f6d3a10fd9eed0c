#include "kafka/producer.h"

namespace st {

Producer::Producer(const KafkaSettings &settings) { open(rd::producer, settings); }

Producer::~Producer() { close(); }

void Producer::on_configure(rd_kafka_conf_t *conf) { kafka_.conf_set_dr_msg_cb(conf, on_report); }

void Producer::require_open() const {
    if (!handle_) throw std::runtime_error("this producer is closed");
}

void Producer::close() {
    if (!handle_) return;
    on_delivery = nullptr;
    // destroy would otherwise wait for what cannot be delivered any more
    kafka_.purge(handle_, rd::purge_queued | rd::purge_inflight);
    for (auto &[name, handle] : topics_) kafka_.topic_destroy(handle);
    topics_.clear();
    kafka_.destroy(handle_);
    handle_ = nullptr;
}

void Producer::on_report(rd_kafka_t *, const rd_kafka_message_t *message, void *opaque) {
    auto *self = static_cast<Producer *>(static_cast<Client *>(opaque));
    const Library &kafka = self->kafka_;
    if (message->err) {
        self->events_.push({3, message->err, "DELIVERY",
                            std::string(kafka.topic_name(message->rkt)) + ": " + kafka.err2str(message->err)});
    } else {
        if (message->opaque == self) self->noted_offset_ = message->offset;
    }
    if (self->on_delivery) self->on_delivery(*message);
}

rd_kafka_topic_t *Producer::topic(const std::string &name) {
    auto found = topics_.find(name);
    if (found != topics_.end()) return found->second;
    rd_kafka_topic_t *handle = kafka_.topic_new(handle_, name.c_str(), nullptr);
    if (!handle) check(kafka_.last_error(), name.c_str());
    return topics_[name] = handle;
}

int Producer::produce(const std::string &topic_name, i32 partition, Bytes key, Bytes value, rd_kafka_headers_t *headers,
                      void *tag) {
    require_open();
    // Each argument has the exact type the tag before it stands for; a headers tag with null is refused by the library.
    return headers ? kafka_.producev(handle_, rd::vtype_rkt, topic(topic_name), rd::vtype_partition, partition,
                                     rd::vtype_key, key.data, key.size, rd::vtype_value, value.data, value.size,
                                     rd::vtype_msgflags, rd::copy_payload, rd::vtype_opaque, tag, rd::vtype_headers,
                                     headers, rd::vtype_end)
                   : kafka_.producev(handle_, rd::vtype_rkt, topic(topic_name), rd::vtype_partition, partition,
                                     rd::vtype_key, key.data, key.size, rd::vtype_value, value.data, value.size,
                                     rd::vtype_msgflags, rd::copy_payload, rd::vtype_opaque, tag, rd::vtype_end);
}

int Producer::poll(int timeout_ms) {
    require_open();
    return kafka_.poll(handle_, timeout_ms);
}

int Producer::flush(int timeout_ms) {
    require_open();
    return kafka_.flush(handle_, timeout_ms);
}

KafkaOutcome Producer::init_transactions(int timeout_ms) {
    require_open();
    return take_outcome(kafka_.init_transactions(handle_, timeout_ms));
}

KafkaOutcome Producer::begin_transaction() {
    require_open();
    return take_outcome(kafka_.begin_transaction(handle_));
}

KafkaOutcome Producer::send_offsets(const std::string &topic_name, const Consumer::Offsets &offsets,
                                    const GroupMetadata &group, int timeout_ms, const std::string &metadata) {
    require_open();
    if (offsets.empty()) throw std::runtime_error("send_offsets: expected at least one (partition, offset), got none");
    PartitionList list(topic_name, offsets, metadata);
    return take_outcome(kafka_.send_offsets_to_transaction(handle_, list.list, group.get(), timeout_ms));
}

KafkaOutcome Producer::commit_transaction(int timeout_ms) {
    require_open();
    return take_outcome(kafka_.commit_transaction(handle_, timeout_ms));
}

KafkaOutcome Producer::abort_transaction(int timeout_ms) {
    require_open();
    return take_outcome(kafka_.abort_transaction(handle_, timeout_ms));
}

}   // namespace st
