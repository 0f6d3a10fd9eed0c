#include "train/ingest.h"

#include <limits>
#include <map>

#include "base/failpoint.h"
#include "kafka/response.h"

namespace st {

namespace {

constexpr std::size_t PREFETCH_AHEAD = 4;         // messages
constexpr i64 CONSUME_WAIT_NS = 20'000'000;   // how late a stop or a new partition may be seen on an idle stream

}  // namespace

Ingest::Ingest(Arena &arena, Consumer &consumer, BatchFiller batch, IngestSettings settings)
    : arena_(arena), consumer_(&consumer), settings_(std::move(settings)),
      filler_(arena, std::move(batch), settings_.round_interval_ns, settings_.batch_growth), messages_(BATCH) {
    filler_.on_ring_full = [this](bool full) { pause(full); };
}

void Ingest::start() {
    filler_.start();
    Consumer::Offsets offsets;
    const std::map<i32, i64> ends(settings_.end_offsets.begin(), settings_.end_offsets.end());
    for (const StartPosition &start : arena_.positions()) {
        offsets.emplace_back(start.partition, start.offset);
        partitions_.push_back(start.partition);
        const auto end = ends.find(start.partition);
        if (end == ends.end() || end->second <= start.offset) continue;
        const auto at = static_cast<std::size_t>(start.partition);
        if (at >= end_of_.size()) end_of_.resize(at + 1, 0);
        end_of_[at] = end->second;
        ++open_;
    }
    consumer_->assign(settings_.topic, offsets);
}

void Ingest::add_partition(i32 partition) {
    filler_.add_partition(partition, 0);
    partitions_.push_back(partition);
    consumer_->assign_more(settings_.topic, {{partition, 0}});
}

// What of the last batch was not taken is read again.
void Ingest::read_with(Consumer &consumer) {
    consumer_->release();
    next_ = count_ = 0;
    consumer_ = &consumer;
    Consumer::Offsets offsets;
    for (i32 partition : partitions_) offsets.emplace_back(partition, filler_.position(partition));
    consumer_->assign(settings_.topic, offsets);
    if (paused_) pause(true);
}

void Ingest::pause(bool full) {
    paused_ = full;
    std::vector<i32> all = consumer_->assignment();
    if (full) consumer_->pause(all);
    else consumer_->resume(all);
}

void Ingest::end_partition(i32 partition, i64 offset) {
    const i64 end = settings_.bounded ? end_of(partition) : 0;
    if (end == 0 || offset < end) return;
    filler_.move_to(partition, end);
    end_of_[static_cast<std::size_t>(partition)] = 0;
    --open_;
}

// Another core has just written the records.
void Ingest::prefetch(std::size_t at) const {
    if (at >= count_) return;
    const MessageView &message = messages_[at];
    for (std::size_t byte = 0; byte < std::min<std::size_t>(message.size, 256); byte += 64)
        __builtin_prefetch(message.value + byte);
}

void Ingest::take(const MessageView &message) {
    if (message.error == rd::partition_eof) return end_partition(message.partition, message.offset);
    if (message.error != 0) {
        if (!is_passing(message.error))   // librdkafka recovers from the others by itself
            throw KafkaFailure(message.error, message.error_text ? message.error_text : "consumer error");
        ++errors_;
        return;
    }
    const i64 end = settings_.bounded ? end_of(message.partition) : std::numeric_limits<i64>::max();
    if (message.offset >= end) return end_partition(message.partition, message.offset);
    RecordView record{message.null_value ? nullptr : message.value,
                      message.size,
                      message.key,
                      message.key_size,
                      message.partition,
                      message.offset,
                      message.timestamp_ms,
                      message.handle};
    filler_.take(record);
    if (message.offset + 1 >= end) end_partition(message.partition, message.offset + 1);
}

IngestStatus Ingest::finish(CloseReason reason) {
    filler_.close(reason);
    filler_.end();
    return IngestStatus::ended;
}

IngestStatus Ingest::run(i64 deadline_ns) {
    const Control &control = arena_.control();
    try {
        for (;;) {
            u32 stop = control.supervisor.stop.load();
            if (stop == static_cast<u32>(Stop::leave)) return IngestStatus::leave;
            if (stop == static_cast<u32>(Stop::drain)) return finish(CloseReason::drained);
            if (bound_reached()) return finish(CloseReason::end);
            i64 now_ns = monotonic_ns();
            filler_.close_if_due(now_ns);
            if (now_ns >= deadline_ns) return IngestStatus::working;
            if (next_ == count_) {
                i64 wait_ns =
                    std::max<i64>(0, std::min({CONSUME_WAIT_NS, filler_.due_ns() - now_ns, deadline_ns - now_ns}));
                next_ = 0;
                count_ = consumer_->consume(messages_.data(), messages_.size(), static_cast<int>(wait_ns / 1'000'000));
                ST_FAILPOINT("ingest.consumed");
            }
            for (i64 due_ns = filler_.due_ns(); next_ < count_ && !bound_reached(); ++next_) {
                prefetch(next_ + PREFETCH_AHEAD);
                take(messages_[next_]);
                if ((next_ & 63) == 63 && monotonic_ns() >= std::min(due_ns, deadline_ns)) { ++next_; break; }
            }
            if (next_ == count_) consumer_->release();
        }
    } catch (const Leaving &) {
        return IngestStatus::leave;
    }
}

}  // namespace st
