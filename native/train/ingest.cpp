#include "train/ingest.h"

#include <algorithm>

namespace st {

namespace {

constexpr std::size_t PREFETCH_AHEAD = 4;     // records
constexpr std::size_t TURN = BatchFiller::AHEAD;   // about 20 us: how long another thread waits to hand a slot over
constexpr i64 TAKE_WAIT_NS = 20'000'000;      // how late a stop or a new partition may be seen on an idle stream

}  // namespace

Ingest::Ingest(RoundCutter &cutter, Source &source, BatchFiller batch)
    : cutter_(cutter),
      source_(source),
      filler_(cutter, std::move(batch), [this](bool full) { source_.pause(full); }),
      records_(BATCH) {}

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
    if (!waiting_.empty()) cutter_.end().wait_for_schema(false);
    waiting_.clear();
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
    if (waiting_.empty()) cutter_.end().wait_for_schema(true);
    waiting_.push_back(partition);
    source_.hold(partition);
}

void Ingest::take_some() {
    const auto turn = filler_.turn();
    const std::size_t end = std::min(count_, next_ + TURN);
    filler_.look_ahead(records_.data() + next_, end - next_);
    for (; next_ < end && !cutter_.full(); ++next_) {
        prefetch(next_ + PREFETCH_AHEAD);
        take(records_[next_]);
    }
    filler_.settle();
    filler_.tell_counts();
}

IngestStatus Ingest::finish(CloseReason reason) {
    cutter_.finish(reason);
    return IngestStatus::ended;
}

IngestStatus Ingest::run(i64 deadline_ns) {
    try {
        for (;;) {
            const Stop stop = cutter_.end().stop();
            if (stop == Stop::leave) return IngestStatus::leave;
            if (stop == Stop::drain) return finish(CloseReason::drained);
            if (bound_reached()) return finish(CloseReason::end);
            i64 now_ns = monotonic_ns();
            cutter_.close_if_due(now_ns);
            if (now_ns >= deadline_ns) return waiting_.empty() ? IngestStatus::working : IngestStatus::waiting;
            if (next_ == count_) {
                const i64 soonest_ns = std::min({TAKE_WAIT_NS, cutter_.due_ns() - now_ns, deadline_ns - now_ns});
                next_ = 0;
                count_ = source_.take(records_.data(), records_.size(), std::max<i64>(0, soonest_ns));
            }
            while (next_ < count_ && !cutter_.full()) {
                take_some();
                if (monotonic_ns() >= std::min(cutter_.due_ns(), deadline_ns)) break;
            }
            if (next_ < count_) continue;
            source_.release();
            if (!source_.ends_round()) continue;
            cutter_.close(CloseReason::end);
            return IngestStatus::round_ended;
        }
    } catch (const Leaving &) {
        return IngestStatus::leave;
    }
}

}  // namespace st
