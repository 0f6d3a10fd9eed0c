// librdkafka with faults: FAULTS="commit_transaction=3,..." names calls that never return;
// "send_offsets_to_transaction=2!" one that fails, so that its transaction has to be aborted, with "&" one that may be
// made again; "commit_transaction=3?" one whose answer is lost though it was done; "query_watermark_offsets=5*" a
// client that has gone deaf: this call and its later ones of that name time out, with "~" nobody leads any more. Of
// destroy only a producer's count. Built by its Python side, with REAL the path of the library whose other functions it
// passes on; what never returns, or fails, is never called.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

template <class Function>
Function *real(const char *name) {
    static void *library = dlopen(REAL, RTLD_NOW);
    return reinterpret_cast<Function *>(dlsym(library, name));
}

enum class Fault { none, stuck, fails, again, unanswered, deaf, leaderless };

struct Call {
    const char *name;
    std::atomic<int> count{0};

    Fault fault() {
        const char *faults = getenv("FAULTS");
        const std::string all = "," + std::string(faults ? faults : "") + ",";
        const std::string this_one = "," + std::string(name) + "=" + std::to_string(++count);
        const auto has = [&](const char *mark) { return all.find(this_one + mark + ",") != std::string::npos; };
        if (has("")) return Fault::stuck;
        if (has("!")) return Fault::fails;
        if (has("&")) return Fault::again;
        if (has("?")) return Fault::unanswered;
        return has("*") ? Fault::deaf : has("~") ? Fault::leaderless : Fault::none;
    }
    [[noreturn]] static void wait_for_ever() {
        while (true) pause();
    }
};

Call init{"init_transactions"}, offsets{"send_offsets_to_transaction"}, commit{"commit_transaction"};
Call abort_{"abort_transaction"}, destroy{"destroy"}, watermarks{"query_watermark_offsets"};
Call group_offsets{"commit"}, consume{"consume_batch_queue"}, metadata{"metadata"}, ids{"DescribeTopics"};

// Who has gone deaf, by its address; which is another's once it is destroyed.
struct Deaf {
    std::atomic<void *> who{nullptr};

    bool is(void *one) const { return who == one; }
    void forget(void *one) { who.compare_exchange_strong(one, nullptr); }
};

Deaf deaf_watermarks, deaf_queue, deaf_metadata, deaf_ids;
constexpr int timed_out = -185;           // RD_KAFKA_RESP_ERR__TIMED_OUT
constexpr int unknown_partition = -190;   // RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION
constexpr char made_up[] = "made up by the test", once_more[] = "made up by the test: once more";

void *error(int code, const char *text) {
    return real<void *(int, const char *, ...)>("rd_kafka_error_new")(code, "%s", text);
}

bool says(const void *error, const char *text) {
    return strcmp(real<const char *(const void *)>("rd_kafka_error_string")(error), text) == 0;
}

// What a call of the transactional interface gives instead of what it does; null: nothing.
void *instead(Fault fault) {
    if (fault == Fault::stuck) Call::wait_for_ever();
    if (fault == Fault::fails) return error(-1, made_up);
    return fault == Fault::again ? error(-1, once_more) : nullptr;
}

}   // namespace

extern "C" {

void *rd_kafka_init_transactions(void *client, int timeout_ms) {
    if (void *error = instead(init.fault())) return error;
    return real<void *(void *, int)>("rd_kafka_init_transactions")(client, timeout_ms);
}

void *rd_kafka_send_offsets_to_transaction(void *client, const void *list, const void *group, int timeout_ms) {
    if (void *error = instead(offsets.fault())) return error;
    return real<void *(void *, const void *, const void *, int)>("rd_kafka_send_offsets_to_transaction")(
        client, list, group, timeout_ms);
}

int rd_kafka_error_txn_requires_abort(const void *error) {
    return says(error, made_up) || real<int(const void *)>("rd_kafka_error_txn_requires_abort")(error);
}

int rd_kafka_error_is_retriable(const void *error) {
    return says(error, once_more) || real<int(const void *)>("rd_kafka_error_is_retriable")(error);
}

void *rd_kafka_commit_transaction(void *client, int timeout_ms) {
    const Fault fault = commit.fault();
    if (void *error = instead(fault)) return error;
    void *failure = real<void *(void *, int)>("rd_kafka_commit_transaction")(client, timeout_ms);
    return fault != Fault::unanswered || failure ? failure : error(timed_out, "answer lost by the test");
}

void *rd_kafka_abort_transaction(void *client, int timeout_ms) {
    if (void *error = instead(abort_.fault())) return error;
    return real<void *(void *, int)>("rd_kafka_abort_transaction")(client, timeout_ms);
}

int rd_kafka_query_watermark_offsets(void *client, const char *topic, int partition, long *low, long *high,
                                     int timeout_ms) {
    static std::atomic<int> answer{0};
    const bool counts = std::string(topic).ends_with(".snapshots");   // nobody looks at those in between
    const Fault fault = counts ? watermarks.fault() : Fault::none;
    if (fault == Fault::deaf || fault == Fault::leaderless) {
        deaf_watermarks.who = client;
        answer = fault == Fault::deaf ? timed_out : unknown_partition;
    }
    if (deaf_watermarks.is(client)) return answer;
    return real<int(void *, const char *, int, long *, long *, int)>("rd_kafka_query_watermark_offsets")(
        client, topic, partition, low, high, timeout_ms);
}

ssize_t rd_kafka_consume_batch_queue(void *queue, int timeout_ms, void **messages, size_t size) {
    if (consume.fault() == Fault::deaf) deaf_queue.who = queue;
    if (deaf_queue.is(queue)) {
        usleep(static_cast<useconds_t>(timeout_ms) * 1000);
        return 0;
    }
    return real<ssize_t(void *, int, void **, size_t)>("rd_kafka_consume_batch_queue")(queue, timeout_ms, messages,
                                                                                       size);
}

int rd_kafka_metadata(void *client, int all, void *topic, const void **found, int timeout_ms) {
    if (metadata.fault() == Fault::deaf) deaf_metadata.who = client;
    if (deaf_metadata.is(client)) return timed_out;
    return real<int(void *, int, void *, const void **, int)>("rd_kafka_metadata")(client, all, topic, found,
                                                                                   timeout_ms);
}

void rd_kafka_DescribeTopics(void *client, const void *names, const void *options, void *queue) {
    if (ids.fault() == Fault::deaf) deaf_ids.who = client;
    if (deaf_ids.is(client)) return;   // no answer ever comes
    real<void(void *, const void *, const void *, void *)>("rd_kafka_DescribeTopics")(client, names, options, queue);
}

int rd_kafka_commit(void *client, const void *list, int in_background) {
    if (group_offsets.fault() == Fault::fails) return timed_out;
    return real<int(void *, const void *, int)>("rd_kafka_commit")(client, list, in_background);
}

void rd_kafka_queue_destroy(void *queue) {
    deaf_queue.forget(queue);
    real<void(void *)>("rd_kafka_queue_destroy")(queue);
}

void rd_kafka_destroy(void *client) {
    for (Deaf *each : {&deaf_watermarks, &deaf_metadata, &deaf_ids}) each->forget(client);
    const bool is_producer = real<int(const void *)>("rd_kafka_type")(client) == 0;
    if (is_producer) instead(destroy.fault());
    real<void(void *)>("rd_kafka_destroy")(client);
}
}
