#include "train/ingest.h"

#include <algorithm>

namespace st {

namespace {

constexpr std::size_t PREFETCH_AHEAD = 4;         // records
constexpr i64 TAKE_WAIT_NS = 20'000'000;      // how late a stop or a new partition may be seen on an idle stream

}  // namespace

Ingest::Ingest(Arena &arena, Source &source, BatchFiller batch, i64 round_interval_ns, i64 batch_growth)
    : end_(arena), source_(source), filler_(end_, std::move(batch), round_interval_ns, batch_growth), records_(BATCH) {
    end_.on_ring_full = [this](bool full) { source_.pause(full); };
}

void Ingest::start() {
    filler_.start();
    source_.start(filler_.positions());
}

void Ingest::add_partition(i32 partition) {
    filler_.add_partition(partition);
    source_.add(partition);
}

void Ingest::rewind() {
    next_ = count_ = 0;
    waiting_.clear();
    end_.wait_for_schema(false);
    source_.start(filler_.positions());
}

// Another core has just written the records.
void Ingest::prefetch(std::size_t at) const {
    if (at >= count_) return;
    const RecordView &record = records_[at];
    for (std::size_t byte = 0; byte < std::min<std::size_t>(record.size, 256); byte += 64)
        __builtin_prefetch(record.value + byte);
}

// Of a partition that waits nothing is taken: what came after its record comes again too.
void Ingest::take(const RecordView &record) {
    const i32 partition = record.partition;
    if (!waiting_.empty() && std::find(waiting_.begin(), waiting_.end(), partition) != waiting_.end()) [[unlikely]]
        return;
    if (filler_.take(record)) [[likely]] return;
    waiting_.push_back(partition);
    end_.wait_for_schema(true);
    source_.hold(partition);
}

IngestStatus Ingest::finish(CloseReason reason) {
    filler_.close(reason);
    filler_.end();
    return IngestStatus::ended;
}

IngestStatus Ingest::run(i64 deadline_ns) {
    try {
        for (;;) {
            const Stop stop = end_.stop();
            if (stop == Stop::leave) return IngestStatus::leave;
            if (stop == Stop::drain) return finish(CloseReason::drained);
            if (bound_reached()) return finish(CloseReason::end);
            i64 now_ns = monotonic_ns();
            filler_.close_if_due(now_ns);
            if (now_ns >= deadline_ns) return waiting_.empty() ? IngestStatus::working : IngestStatus::waiting;
            if (next_ == count_) {
                const i64 soonest_ns = std::min({TAKE_WAIT_NS, filler_.due_ns() - now_ns, deadline_ns - now_ns});
                next_ = 0;
                count_ = source_.take(records_.data(), records_.size(), std::max<i64>(0, soonest_ns));
            }
            for (i64 due_ns = filler_.due_ns(); next_ < count_ && !filler_.full(); ++next_) {
                prefetch(next_ + PREFETCH_AHEAD);
                take(records_[next_]);
                if ((next_ & 63) == 63 && monotonic_ns() >= std::min(due_ns, deadline_ns)) { ++next_; break; }
            }
            if (next_ == count_) source_.release();
        }
    } catch (const Leaving &) {
        return IngestStatus::leave;
    }
}

}  // namespace st
