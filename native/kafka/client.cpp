#include "kafka/client.h"

#include <memory>

namespace st {
namespace {

void on_log(const rd_kafka_t *handle, int level, const char *facility, const char *text) {
    if (!handle) return;
    auto *client = static_cast<Client *>(Library::get().opaque(handle));
    if (client) client->events().push({level, 0, facility, text});
}

void on_error(rd_kafka_t *handle, int code, const char *reason, void *opaque) {
    const Library &kafka = Library::get();
    auto *client = static_cast<Client *>(opaque);
    if (code == rd::fatal) {   // the underlying error says more than "fatal"
        char text[512] = "";
        int real = kafka.fatal_error(handle, text, sizeof text);
        client->events().push({2, real, "ERROR", text});
    } else {
        client->events().push({3, code, "ERROR", std::string(kafka.err2name(code)) + ": " + reason});
    }
}

template <class T>
using Owned = std::unique_ptr<T, void (*)(T *)>;

}   // namespace

void check(int code, const char *what) {
    if (code) throw KafkaFailure(code, std::string(what) + ": " + Library::get().err2str(code));
}

KafkaOutcome take_outcome(rd_kafka_error_t *error) {
    if (!error) return {};
    const Library &kafka = Library::get();
    KafkaOutcome outcome{kafka.error_code(error), kafka.error_is_retriable(error) != 0,
                         kafka.error_txn_requires_abort(error) != 0, kafka.error_is_fatal(error) != 0,
                         kafka.error_string(error)};
    kafka.error_destroy(error);
    return outcome;
}

void check(rd_kafka_error_t *error, const char *what) {
    KafkaOutcome outcome = take_outcome(error);
    if (outcome.code) throw KafkaFailure(outcome.code, std::string(what) + ": " + outcome.text);
}

void Client::open(rd::Type type, const KafkaSettings &settings) {
    char text[512] = "";
    rd_kafka_conf_t *conf = kafka_.conf_new();
    for (const auto &[name, value] : settings)
        if (kafka_.conf_set(conf, name.c_str(), value.c_str(), text, sizeof text) != rd::conf_ok) {
            kafka_.conf_destroy(conf);
            throw std::runtime_error(text);   // names the setting, never a secret's value
        }
    kafka_.conf_set_opaque(conf, this);
    kafka_.conf_set_log_cb(conf, on_log);
    kafka_.conf_set_error_cb(conf, on_error);
    on_configure(conf);
    handle_ = kafka_.new_(type, conf, text, sizeof text);
    if (!handle_) {
        kafka_.conf_destroy(conf);
        throw std::runtime_error(text);
    }
}

i32 Client::partition_count(const std::string &topic, int timeout_ms) {
    Owned<rd_kafka_topic_t> rkt(kafka_.topic_new(handle_, topic.c_str(), nullptr), kafka_.topic_destroy);
    if (!rkt) check(kafka_.last_error(), topic.c_str());
    const rd_kafka_metadata_t *metadata = nullptr;
    check(kafka_.metadata(handle_, 0, rkt.get(), &metadata, timeout_ms), topic.c_str());
    int code = metadata->topic_cnt ? metadata->topics[0].err : rd::timed_out;
    i32 count = metadata->topic_cnt ? metadata->topics[0].partition_cnt : 0;
    kafka_.metadata_destroy(metadata);
    check(code, topic.c_str());
    return count;
}

AskedTopicId::AskedTopicId(rd_kafka_t *client, std::string topic)
    : topic_(std::move(topic)), answers_(Library::get().queue_new(client), Library::get().queue_destroy) {
    const Library &kafka = Library::get();
    const char *name = topic_.c_str();
    Owned<rd_kafka_TopicCollection_t> names(kafka.TopicCollection_of_topic_names(&name, 1),
                                            kafka.TopicCollection_destroy);
    kafka.DescribeTopics(client, names.get(), nullptr, answers_.get());
}

std::string AskedTopicId::answer(int timeout_ms) const {
    const Library &kafka = Library::get();
    const char *name = topic_.c_str();
    Owned<rd_kafka_event_t> event(kafka.queue_poll(answers_.get(), timeout_ms), [](rd_kafka_event_t *e) {
        if (e) Library::get().event_destroy(e);
    });
    if (!event) check(rd::timed_out, name);
    check(kafka.event_error(event.get()), name);
    std::size_t count = 0;
    auto **topics = kafka.DescribeTopics_result_topics(kafka.event_DescribeTopics_result(event.get()), &count);
    if (!count) check(rd::timed_out, name);
    if (const rd_kafka_error_t *error = kafka.TopicDescription_error(topics[0])) check(kafka.error_code(error), name);
    return kafka.Uuid_base64str(kafka.TopicDescription_topic_id(topics[0]));
}

std::pair<i64, i64> Client::watermarks(const std::string &topic, i32 partition, int timeout_ms) {
    std::int64_t low = 0, high = 0;
    check(kafka_.query_watermark_offsets(handle_, topic.c_str(), partition, &low, &high, timeout_ms), topic.c_str());
    return {low, high};
}

std::vector<std::pair<i64, i64>> Client::bounds(const std::string &topic, int timeout_ms) {
    std::vector<std::pair<i64, i64>> found;
    const i32 partitions = partition_count(topic, timeout_ms);
    for (i32 partition = 0; partition < partitions; ++partition)
        found.push_back(watermarks(topic, partition, timeout_ms));
    return found;
}

}   // namespace st
