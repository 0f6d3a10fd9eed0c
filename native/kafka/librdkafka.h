// The part of librdkafka's stable C interface that streamtrain uses, declared by hand from its public API documentation
// (https://docs.confluent.io/platform/current/clients/librdkafka/html/rdkafka_8h.html). The functions are looked up at
// run time in the library that the confluent-kafka wheel brings, so nothing is linked or vendored.
#pragma once
#include <cstdio>

#include "base/types.h"

extern "C" {
struct rd_kafka_t;
struct rd_kafka_conf_t;
struct rd_kafka_topic_t;
struct rd_kafka_queue_t;
struct rd_kafka_headers_t;
struct rd_kafka_error_t;
struct rd_kafka_consumer_group_metadata_t;
struct rd_kafka_event_t;
struct rd_kafka_TopicCollection_t;
struct rd_kafka_TopicDescription_t;
struct rd_kafka_Uuid_t;

struct rd_kafka_message_t {
    int err;                    // 0 or an error code; then `payload` is its text
    rd_kafka_topic_t *rkt;
    std::int32_t partition;
    void *payload;              // null: a record without a value
    std::size_t len;
    void *key;
    std::size_t key_len;
    std::int64_t offset;
    void *opaque;               // of the produce call
};

struct rd_kafka_topic_partition_t {
    char *topic;
    std::int32_t partition;
    std::int64_t offset;
    void *metadata;
    std::size_t metadata_size;
    void *opaque;
    int err;
    void *internal;
};

struct rd_kafka_topic_partition_list_t {
    int cnt;
    int size;
    rd_kafka_topic_partition_t *elems;
};

struct rd_kafka_metadata_partition_t {
    std::int32_t id;
    int err;
    std::int32_t leader;
    int replica_cnt;
    std::int32_t *replicas;
    int isr_cnt;
    std::int32_t *isrs;
};

struct rd_kafka_metadata_topic_t {
    char *topic;
    int partition_cnt;
    rd_kafka_metadata_partition_t *partitions;
    int err;
};

struct rd_kafka_metadata_t {
    int broker_cnt;
    void *brokers;
    int topic_cnt;
    rd_kafka_metadata_topic_t *topics;
    std::int32_t orig_broker_id;
    char *orig_broker_name;
};
}  // extern "C"

namespace st::rd {

enum Type { producer = 0, consumer = 1 };
enum ConfResult { conf_ok = 0 };

enum Error : int {
    ok = 0,
    fail = -196,
    transport = -195,
    resolve = -193,
    partition_eof = -191,
    all_brokers_down = -187,
    timed_out = -185,
    queue_full = -184,
    ssl = -181,
    assign_partitions = -175,
    revoke_partitions = -174,
    state = -172,
    no_offset = -168,
    purge_queue = -152,
    fatal = -150,
    inconsistent = -149,
    fenced = -144,
    message_too_large = 10,   // the broker's code, also given by produce
    group_denied = 30,        // the same
};

enum Offset : i64 { beginning = -2, end = -1, stored = -1000, invalid = -1001 };

// Arguments of producev, each followed by its value(s), closed by vtype_end.
enum Vtype : int {
    vtype_end = 0,
    vtype_rkt = 2,         // rd_kafka_topic_t *
    vtype_partition = 3,   // int32_t; -1: by the key
    vtype_value = 4,       // void *, size_t
    vtype_key = 5,         // void *, size_t
    vtype_opaque = 6,      // void *
    vtype_msgflags = 7,    // int
    vtype_headers = 10,    // rd_kafka_headers_t *, the library's own after success
};

constexpr int copy_payload = 0x2;               // RD_KAFKA_MSG_F_COPY
constexpr i32 any_partition = -1;               // RD_KAFKA_PARTITION_UA
constexpr int purge_queued = 0x1, purge_inflight = 0x2;

using LogCallback = void(const rd_kafka_t *, int level, const char *facility, const char *text);
using ErrorCallback = void(rd_kafka_t *, int err, const char *reason, void *opaque);
using RebalanceCallback = void(rd_kafka_t *, int err, rd_kafka_topic_partition_list_t *, void *opaque);
using DeliveryCallback = void(rd_kafka_t *, const rd_kafka_message_t *, void *opaque);

}  // namespace st::rd

// X(name without rd_kafka_, return type, argument types)
#define ST_KAFKA_FUNCTIONS(X)                                                                                          \
    X(version_str, const char *, (void))                                                                               \
    X(err2str, const char *, (int))                                                                                    \
    X(err2name, const char *, (int))                                                                                   \
    X(conf_new, rd_kafka_conf_t *, (void))                                                                             \
    X(conf_destroy, void, (rd_kafka_conf_t *))                                                                         \
    X(conf_set, int, (rd_kafka_conf_t *, const char *, const char *, char *, std::size_t))                             \
    X(conf_set_opaque, void, (rd_kafka_conf_t *, void *))                                                              \
    X(conf_set_log_cb, void, (rd_kafka_conf_t *, ::st::rd::LogCallback *))                                             \
    X(conf_set_error_cb, void, (rd_kafka_conf_t *, ::st::rd::ErrorCallback *))                                         \
    X(conf_set_rebalance_cb, void, (rd_kafka_conf_t *, ::st::rd::RebalanceCallback *))                                 \
    X(conf_set_dr_msg_cb, void, (rd_kafka_conf_t *, ::st::rd::DeliveryCallback *))                                     \
    X(opaque, void *, (const rd_kafka_t *))                                                                            \
    X(new_, rd_kafka_t *, (int, rd_kafka_conf_t *, char *, std::size_t))                                               \
    X(destroy, void, (rd_kafka_t *))                                                                                   \
    X(fatal_error, int, (rd_kafka_t *, char *, std::size_t))                                                           \
    X(topic_new, rd_kafka_topic_t *, (rd_kafka_t *, const char *, void *))                                             \
    X(topic_destroy, void, (rd_kafka_topic_t *))                                                                       \
    X(topic_name, const char *, (const rd_kafka_topic_t *))                                                            \
    X(topic_partition_list_new, rd_kafka_topic_partition_list_t *, (int))                                              \
    X(topic_partition_list_destroy, void, (rd_kafka_topic_partition_list_t *))                                         \
    X(topic_partition_list_add, rd_kafka_topic_partition_t *,                                                          \
      (rd_kafka_topic_partition_list_t *, const char *, std::int32_t))                                                 \
    X(assign, int, (rd_kafka_t *, const rd_kafka_topic_partition_list_t *))                                            \
    X(assignment, int, (rd_kafka_t *, rd_kafka_topic_partition_list_t **))                                             \
    X(assignment_lost, int, (rd_kafka_t *))                                                                            \
    X(incremental_assign, rd_kafka_error_t *, (rd_kafka_t *, const rd_kafka_topic_partition_list_t *))                 \
    X(incremental_unassign, rd_kafka_error_t *, (rd_kafka_t *, const rd_kafka_topic_partition_list_t *))               \
    X(rebalance_protocol, const char *, (rd_kafka_t *))                                                                \
    X(subscribe, int, (rd_kafka_t *, const rd_kafka_topic_partition_list_t *))                                         \
    X(poll_set_consumer, int, (rd_kafka_t *))                                                                          \
    X(queue_get_consumer, rd_kafka_queue_t *, (rd_kafka_t *))                                                          \
    X(queue_new, rd_kafka_queue_t *, (rd_kafka_t *))                                                                   \
    X(queue_poll, rd_kafka_event_t *, (rd_kafka_queue_t *, int))                                                       \
    X(queue_destroy, void, (rd_kafka_queue_t *))                                                                       \
    X(consume_batch_queue, ssize_t, (rd_kafka_queue_t *, int, rd_kafka_message_t **, std::size_t))                     \
    X(message_destroy, void, (rd_kafka_message_t *))                                                                   \
    X(message_timestamp, std::int64_t, (const rd_kafka_message_t *, int *))                                            \
    X(message_errstr, const char *, (const rd_kafka_message_t *))                                                      \
    X(message_headers, int, (const rd_kafka_message_t *, rd_kafka_headers_t **))                                       \
    X(headers_new, rd_kafka_headers_t *, (std::size_t))                                                                \
    X(headers_copy, rd_kafka_headers_t *, (const rd_kafka_headers_t *))                                                \
    X(headers_destroy, void, (rd_kafka_headers_t *))                                                                   \
    X(header_add, int, (rd_kafka_headers_t *, const char *, ssize_t, const void *, ssize_t))                           \
    X(header_get_all, int, (const rd_kafka_headers_t *, std::size_t, const char **, const void **, std::size_t *))     \
    X(header_get_last, int, (const rd_kafka_headers_t *, const char *, const void **, std::size_t *))                  \
    X(pause_partitions, int, (rd_kafka_t *, rd_kafka_topic_partition_list_t *))                                        \
    X(resume_partitions, int, (rd_kafka_t *, rd_kafka_topic_partition_list_t *))                                       \
    X(seek_partitions, rd_kafka_error_t *, (rd_kafka_t *, rd_kafka_topic_partition_list_t *, int))                     \
    X(position, int, (rd_kafka_t *, rd_kafka_topic_partition_list_t *))                                                \
    X(committed, int, (rd_kafka_t *, rd_kafka_topic_partition_list_t *, int))                                          \
    X(commit, int, (rd_kafka_t *, const rd_kafka_topic_partition_list_t *, int))                                       \
    X(offsets_store, int, (rd_kafka_t *, rd_kafka_topic_partition_list_t *))                                           \
    X(query_watermark_offsets, int,                                                                                    \
      (rd_kafka_t *, const char *, std::int32_t, std::int64_t *, std::int64_t *, int))                                 \
    X(metadata, int, (rd_kafka_t *, int, rd_kafka_topic_t *, const rd_kafka_metadata_t **, int))                       \
    X(metadata_destroy, void, (const rd_kafka_metadata_t *))                                                           \
    X(consumer_group_metadata, rd_kafka_consumer_group_metadata_t *, (rd_kafka_t *))                                   \
    X(consumer_group_metadata_destroy, void, (rd_kafka_consumer_group_metadata_t *))                                   \
    X(consumer_group_metadata_write, rd_kafka_error_t *,                                                               \
      (const rd_kafka_consumer_group_metadata_t *, void **, std::size_t *))                                            \
    X(consumer_group_metadata_read, rd_kafka_error_t *,                                                                \
      (rd_kafka_consumer_group_metadata_t **, const void *, std::size_t))                                              \
    X(consumer_close, int, (rd_kafka_t *))                                                                             \
    X(mem_free, void, (rd_kafka_t *, void *))                                                                          \
    X(producev, int, (rd_kafka_t *, ...))                                                                              \
    X(poll, int, (rd_kafka_t *, int))                                                                                  \
    X(flush, int, (rd_kafka_t *, int))                                                                                 \
    X(purge, int, (rd_kafka_t *, int))                                                                                 \
    X(outq_len, int, (rd_kafka_t *))                                                                                   \
    X(last_error, int, (void))                                                                                         \
    X(init_transactions, rd_kafka_error_t *, (rd_kafka_t *, int))                                                      \
    X(begin_transaction, rd_kafka_error_t *, (rd_kafka_t *))                                                           \
    X(send_offsets_to_transaction, rd_kafka_error_t *,                                                                 \
      (rd_kafka_t *, const rd_kafka_topic_partition_list_t *, const rd_kafka_consumer_group_metadata_t *, int))        \
    X(commit_transaction, rd_kafka_error_t *, (rd_kafka_t *, int))                                                     \
    X(abort_transaction, rd_kafka_error_t *, (rd_kafka_t *, int))                                                      \
    X(error_code, int, (const rd_kafka_error_t *))                                                                     \
    X(error_string, const char *, (const rd_kafka_error_t *))                                                          \
    X(error_is_fatal, int, (const rd_kafka_error_t *))                                                                 \
    X(error_is_retriable, int, (const rd_kafka_error_t *))                                                             \
    X(error_txn_requires_abort, int, (const rd_kafka_error_t *))                                                       \
    X(error_destroy, void, (rd_kafka_error_t *))                                                                       \
    X(TopicCollection_of_topic_names, rd_kafka_TopicCollection_t *, (const char **, std::size_t))                      \
    X(TopicCollection_destroy, void, (rd_kafka_TopicCollection_t *))                                                   \
    X(DescribeTopics, void, (rd_kafka_t *, const rd_kafka_TopicCollection_t *, const void *, rd_kafka_queue_t *))      \
    X(event_error, int, (rd_kafka_event_t *))                                                                          \
    X(event_DescribeTopics_result, const rd_kafka_event_t *, (rd_kafka_event_t *))                                     \
    X(DescribeTopics_result_topics, const rd_kafka_TopicDescription_t **, (const rd_kafka_event_t *, std::size_t *))   \
    X(TopicDescription_topic_id, const rd_kafka_Uuid_t *, (const rd_kafka_TopicDescription_t *))                       \
    X(TopicDescription_error, const rd_kafka_error_t *, (const rd_kafka_TopicDescription_t *))                         \
    X(Uuid_base64str, const char *, (const rd_kafka_Uuid_t *))                                                         \
    X(event_destroy, void, (rd_kafka_event_t *))

namespace st {

// The library's functions; loaded once per process, then read-only.
struct Library {
#define ST_KAFKA_MEMBER(name, result, arguments) result(*name) arguments = nullptr;
    ST_KAFKA_FUNCTIONS(ST_KAFKA_MEMBER)
#undef ST_KAFKA_MEMBER

    // Throws std::runtime_error before load().
    static const Library &get();
    // Throws std::runtime_error naming the path and the symbol that is missing. A second call does nothing.
    static void load(const char *path);
};

}  // namespace st
