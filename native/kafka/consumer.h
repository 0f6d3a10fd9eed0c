// A librdkafka consumer taken a batch of messages at a time. One thread calls it; only events() may be drained by
// another.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kafka/client.h"

namespace st {

// One consumed message, in place until release(). With `error` set (rd::partition_eof ...) `offset` says where.
struct MessageView {
    const u8 *value;
    u64 size;
    const u8 *key;   // null: no key
    u64 key_size;
    i32 partition;
    i32 error;   // 0 or a librdkafka error code
    i64 offset;
    i64 timestamp_ms;             // -1: none
    bool null_value;              // a tombstone
    const char *error_text;       // null without an error
    rd_kafka_message_t *handle;   // for headers
};

// A consumer's place in its group, for offsets in a producer's transaction.
class GroupMetadata {
  public:
    explicit GroupMetadata(rd_kafka_consumer_group_metadata_t *owned) : handle_(owned, destroy) {}
    // Throws KafkaFailure when the bytes are not what serialize() gave.
    static GroupMetadata parse(const std::string &bytes);
    std::string serialize() const;
    const rd_kafka_consumer_group_metadata_t *get() const { return handle_.get(); }

  private:
    static void destroy(rd_kafka_consumer_group_metadata_t *handle) {
        if (handle) Library::get().consumer_group_metadata_destroy(handle);
    }
    std::unique_ptr<rd_kafka_consumer_group_metadata_t, void (*)(rd_kafka_consumer_group_metadata_t *)> handle_;
};

class Consumer : public Client {
  public:
    using Offsets = std::vector<std::pair<i32, i64>>;   // (partition, offset)

    // Throws std::runtime_error with librdkafka's text. The settings need a group.id, for manual assignment too.
    explicit Consumer(const KafkaSettings &settings);
    ~Consumer() override;

    // Reads exactly these partitions from these offsets (rd::beginning and rd::end allowed); replaces what was
    // assigned.
    void assign(const std::string &topic, const Offsets &offsets);
    // Adds partitions to a manual assignment and leaves the others, and what is prefetched of them, alone.
    void assign_more(const std::string &topic, const Offsets &offsets);
    // Joins the group. Without `reads` it has partitions and fetches nothing of them.
    void subscribe(const std::string &topic, bool reads = true);
    const std::string &topic() const { return topic_; }
    std::vector<i32> assignment() const;

    // Releases the batch before, waits up to timeout_ms for the first message, then takes what is there. End of
    // partition and consumer errors come as messages with `error`. Also serves rebalances and the error callback: call
    // it often.
    std::size_t consume(MessageView *out, std::size_t capacity, int timeout_ms);
    // Frees the messages of the last consume(): each keeps its whole fetch buffer alive, so do it early.
    void release();
    // Messages thrown away because a rebalance that came up while they were taken gave partitions to somebody else; a
    // group member then goes back to committed offsets (rewind_to_committed).
    u64 dropped() const { return dropped_; }
    // Rebalances that took partitions away, and what to do just before one does (its thread is consume()'s or
    // close()'s).
    std::function<void()> on_revoke;
    // Where a group member begins in partitions it is given; without it, and where it throws KafkaFailure, at the
    // committed offsets, and `unsure()` counts the latter.
    std::function<Offsets(const std::vector<i32> &)> on_assign;
    u64 unsure() const { return unsure_; }
    // The topic's id, which offsets are committed with: those committed with another are none.
    void set_identity(std::string id) { identity_ = std::move(id); }
    const std::string &identity() const { return identity_; }

    void pause(const std::vector<i32> &partitions);
    void resume(const std::vector<i32> &partitions);
    void seek(const Offsets &offsets, int timeout_ms);
    // Next offsets to be handed out; rd::invalid where nothing was consumed yet.
    Offsets position(const std::vector<i32> &partitions) const;
    // rd::invalid where there is none.
    Offsets committed(const std::vector<i32> &partitions, int timeout_ms) const;
    // Seeks all assigned partitions to their committed offsets; those without one to `otherwise` (rd::beginning,
    // rd::end).
    void rewind_to_committed(i64 otherwise, int timeout_ms);
    // Offsets for the background commit (enable.auto.commit with enable.auto.offset.store=false).
    void store_offsets(const Offsets &offsets);
    void commit(const Offsets &offsets);   // synchronous
    // Whether librdkafka has stopped hearing its broker, as it may after a stall: nothing has come of what a partition
    // held when this was asked before, though consume() has waited in vain for 5 s since (until then: false). Needs
    // enable.partition.eof. Throws KafkaFailure where the broker does not say what there is.
    bool is_deaf(int timeout_ms);
    GroupMetadata group_metadata() const;

    // Leaves the group and frees everything; later calls throw. The destructor does it too.
    void close();

  protected:
    void on_configure(rd_kafka_conf_t *conf) override;

  private:
    static void on_rebalance(rd_kafka_t *, int code, rd_kafka_topic_partition_list_t *list, void *opaque);
    void begin_in(rd_kafka_topic_partition_list_t *list);
    void require_open() const;
    void drop(std::size_t count);
    void forget_heard();

    struct Held {
        i32 partition;
        i64 heard, end;   // offsets: up to which it was heard, and its last stable one
    };

    std::string topic_;
    bool joins_ = false;   // a group
    bool reads_ = true;
    rd_kafka_queue_t *queue_ = nullptr;
    std::vector<rd_kafka_message_t *> messages_;
    std::size_t held_ = 0;
    u64 revocations_ = 0, dropped_ = 0, unsure_ = 0;
    std::string identity_;
    int in_vain_ms_ = 0;              // waited since is_deaf() looked
    std::vector<Held> held_before_;   // at that look
    std::map<i32, i64> ends_heard_;   // by partition
    std::set<i32> paused_;
};

// (name, value) of each header; a null value has size 0 and data() null.
struct HeaderView {
    const char *name;
    const u8 *value;
    u64 size;
};
std::vector<HeaderView> headers_of(const rd_kafka_message_t *message);
// The last one of a name; a null value where there is none.
HeaderView header_of(const rd_kafka_message_t *message, const char *name);

}   // namespace st
