#include "kafka/settings.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

namespace st {
namespace purpose_sets {   // of its own: a purpose has the name of a function elsewhere

template <class... P>
constexpr u32 of(P... purposes) {
    return ((1u << static_cast<u32>(purposes)) | ... | 0u);
}

using enum Purpose;
constexpr u32 all = (1u << static_cast<u32>(count)) - 1;
constexpr u32 stretches = of(read, replay, answers);       // of a topic: as ingest reads them
constexpr u32 records = stretches | of(ingest);
constexpr u32 snapshots = of(follow, serve);
constexpr u32 members = of(requests, requests_once);
constexpr u32 readers = records | snapshots | members;
constexpr u32 consumers = readers | of(group, host);
constexpr u32 administrators = of(admin, start);
constexpr u32 producers = all & ~(consumers | administrators);
constexpr u32 transactions = of(publish, answer, resend);
constexpr u32 answerers = of(answer, answer_once);
constexpr u32 none = 0;

constexpr const char *own_positions = "streamtrain reads from positions of its own";
constexpr const char *exact = "exactly once rests on it";
constexpr const char *soon_back = "a broker that is back is heard of within a second";
constexpr const char *small_transactions = "100 ms by default: a small transaction's p50 falls from 105 to 4.4 ms";

constexpr KafkaSetting SETTINGS[] = {
    {"group.id", nullptr, Hold::owned, consumers, own_positions},
    {"group.instance.id", nullptr, Hold::owned, none, own_positions},
    {"group.protocol", nullptr, Hold::owned, none, own_positions},
    {"partition.assignment.strategy", "range,roundrobin", Hold::owned, members, own_positions},
    {"partition.assignment.strategy", "cooperative-sticky", Hold::owned, of(host), "a host keeps what it can"},
    {"max.poll.interval.ms", "10000", Hold::owned, of(host), "a host that hangs gives its partitions up"},
    {"enable.auto.commit", "false", Hold::owned, consumers & ~of(requests_once), own_positions},
    {"enable.auto.commit", "true", Hold::owned, of(requests_once), own_positions},
    {"auto.commit.interval.ms", "500", Hold::owned, of(requests_once), own_positions},
    {"enable.auto.offset.store", "false", Hold::owned, readers, own_positions},
    {"auto.offset.reset", "error", Hold::owned, records, "records.start says where the first start begins"},
    {"auto.offset.reset", "earliest", Hold::owned, snapshots | members, "a group without offsets answers all requests"},
    {"enable.partition.eof", "true", Hold::owned, readers, "a bounded read ends by it; a deaf client is seen by it"},
    {"isolation.level", "read_committed", Hold::owned, consumers, exact},
    {"transactional.id", nullptr, Hold::owned, transactions, "it is made of the job's name"},
    {"transaction.timeout.ms", "10000", Hold::owned, of(publish, resend), exact},
    {"transaction.timeout.ms", "5000", Hold::owned, of(answer), exact},
    {"enable.idempotence", "true", Hold::owned, producers, exact},
    {"enable.gapless.guarantee", nullptr, Hold::owned, none, exact},
    {"acks", "all", Hold::owned, producers, exact},
    {"request.required.acks", nullptr, Hold::owned, none, exact},
    {"delivery.report.only.error", nullptr, Hold::owned, of(write), exact},

    {"check.crcs", "true", Hold::fixed, records | snapshots | of(group), "what was altered on its way is not trained"},
    {"queued.min.messages", "100000", Hold::given, records, "a reader that is faster than the network never waits"},
    {"queued.max.messages.kbytes", "16384", Hold::given, of(ingest, read, answers) | members,
     "memory is bounded; each message costs 320 bytes beyond these"},
    {"queued.max.messages.kbytes", "4096", Hold::fixed, of(replay), "it has a client a partition"},
    {"queued.max.messages.kbytes", "65536", Hold::given, snapshots, "chunks are large"},
    {"fetch.message.max.bytes", "8388608", Hold::given, snapshots, "chunks are large"},
    {"fetch.queue.backoff.ms", "5", Hold::given, records | members,
     "the default of 1000 stalls a reader that is faster than the network"},
    {"fetch.wait.max.ms", "20", Hold::given, of(ingest, read, replay), "of 500, the default, records come late"},
    {"fetch.wait.max.ms", "10", Hold::fixed, of(answers), "the default of 500 is most of an answer's delay"},
    {"fetch.wait.max.ms", "10", Hold::given, of(follow), "the default of 500 is most of a follower's delay"},
    // How long an idle fetch lies at the broker; a request ends it at once. A shorter one only comes again sooner, at
    // 5 ms 200 times a second, and what arrives in between waits: p99 at 1,000 requests/s 0.87 ms instead of 0.76.
    {"fetch.wait.max.ms", "100", Hold::given, members, "an idle fetch that comes again holds up what arrives"},
    {"fetch.wait.max.ms", "100", Hold::given, of(serve), "snapshots are rare, and share the broker with the requests"},
    {"fetch.error.backoff.ms", "50", Hold::given, snapshots | members, "a new leader is asked soon"},
    {"session.timeout.ms", "10000", Hold::given, members | of(host),
     "a killed member's partitions are free after this"},
    {"heartbeat.interval.ms", "2000", Hold::given, members | of(host), "several in a session"},
    {"topic.metadata.refresh.interval.ms", "10000", Hold::given, readers, "new partitions are found soon"},
    {"enable.metrics.push", "false", Hold::given, all, "histograms for the broker take 300 KB of each client"},
    {"reconnect.backoff.max.ms", "1000", Hold::given, all & ~of(write, stream, start), soon_back},
    {"reconnect.backoff.max.ms", "200", Hold::fixed, of(start), "it is waited for"},

    {"linger.ms", "0", Hold::fixed, of(publish, contribute), "it is sent as a whole"},
    {"linger.ms", "0", Hold::given, answerers, "an answer is waited for"},
    {"linger.ms", "5", Hold::given, of(write), "rows given one by one are sent together"},
    {"linger.ms", "5", Hold::fixed, of(stream), "rows given one by one are sent together"},
    {"retry.backoff.ms", "1", Hold::fixed, of(publish), small_transactions},
    {"retry.backoff.ms", "1", Hold::given, answerers, small_transactions},
    {"retry.backoff.max.ms", "20", Hold::fixed, of(publish), small_transactions},
    {"retry.backoff.max.ms", "20", Hold::given, answerers, small_transactions},
    {"message.timeout.ms", "30000", Hold::fixed, of(answer_once), "then its requests are read again"},
    {"queue.buffering.max.kbytes", "65536", Hold::given, answerers, "memory of answers on their way is bounded"},
    {"queue.buffering.max.kbytes", "65536", Hold::given, of(publish, contribute),
     "memory of chunks on their way is bounded"},
    {"queue.buffering.max.messages", "200000", Hold::fixed, of(stream), "a stream as fast as it goes never waits"},
    {"partitioner", "murmur2_random", Hold::given, producers, "where the Java clients put the same key"},
    {"log_level", "3", Hold::fixed, of(stream), "a broker that has just started warns of what it then does"},
    {"log_level", "0", Hold::fixed, of(start), "refused connections are no news before it is up"},
};

}   // namespace purpose_sets

using purpose_sets::SETTINGS;

std::span<const KafkaSetting> kafka_settings() { return SETTINGS; }

KafkaSettings client_settings(Purpose purpose, const KafkaSettings &given, const KafkaSettings &own, u32 clients) {
    std::map<std::string, std::string> settings;
    const auto put = [&](bool users_come_first) {
        for (const KafkaSetting &setting : SETTINGS) {
            const bool is_users = setting.hold == Hold::given;
            if (setting.value && setting.purposes & purpose_sets::of(purpose) && is_users == users_come_first)
                settings[setting.name] = setting.value;
        }
    };
    put(true);
    for (const auto &[name, value] : given) settings[name] = value;
    put(false);
    for (const auto &[name, value] : own) settings[name] = value;
    if (auto queued = settings.find("queued.max.messages.kbytes"); clients > 1 && queued != settings.end())
        queued->second = std::to_string(std::max(1024l, std::strtol(queued->second.c_str(), nullptr, 10) / clients));
    return {settings.begin(), settings.end()};
}

}   // namespace st
