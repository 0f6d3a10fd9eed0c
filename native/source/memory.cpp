#include "source/memory.h"

#include <chrono>
#include <utility>

#include "base/failpoint.h"

namespace st {
namespace {

constexpr u64 bytes_at_most = u64{64} << 20;   // that lie here and are not taken

}   // namespace

bool MemorySource::put(std::string record, i64 deadline_ns, Place place) {
    std::unique_lock lock(mutex_);
    const std::chrono::nanoseconds left(std::max<i64>(0, deadline_ns - monotonic_ns()));
    auto room = [&] { return closed_ || bytes_ == 0 || bytes_ + record.size() <= bytes_at_most; };
    if (!changed_.wait_for(lock, left, room) || closed_) return false;
    bytes_ += record.size();
    records_.push_back({std::move(record), place});
    ++put_;
    changed_.notify_all();
    return true;
}

void MemorySource::end_round() {
    std::lock_guard lock(mutex_);
    round_ends_.push_back(put_);
    changed_.notify_all();
}

void MemorySource::end() {
    std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
}

void MemorySource::close() {
    std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
}

void MemorySource::start(const std::vector<StartPosition> &positions) {
    std::lock_guard lock(mutex_);
    if (!positions.empty()) partition_ = positions.front().partition;
    starts_ = positions;
}

std::vector<StartPosition> MemorySource::starts() const {
    std::lock_guard lock(mutex_);
    return starts_;
}

std::size_t MemorySource::take(RecordView *out, std::size_t capacity, i64 wait_ns) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::nanoseconds(wait_ns),
                      [&] { return ended_ || taken_ < records_.size() || at_round_end(); });
    std::size_t count = 0;
    for (; count < capacity && taken_ < records_.size() && !at_round_end(); ++count, ++taken_, ++next_, ++done_) {
        const auto &[bytes, place] = records_[taken_];
        out[count] = {.value = reinterpret_cast<const u8 *>(bytes.data()),
                      .size = bytes.size(),
                      .partition = place.partition < 0 ? partition_ : place.partition,
                      .offset = place.offset < 0 ? next_ : place.offset,
                      .span = place.span};
    }
    ST_FAILPOINT("ingest.consumed");
    return count;
}

void MemorySource::release() {
    std::lock_guard lock(mutex_);
    for (; taken_ > 0; --taken_) {
        bytes_ -= records_.front().bytes.size();
        records_.pop_front();
    }
    changed_.notify_all();
}

bool MemorySource::ended() const {
    std::lock_guard lock(mutex_);
    return ended_ && taken_ == records_.size() && round_ends_.empty();
}

bool MemorySource::ends_round() {
    std::lock_guard lock(mutex_);
    if (!at_round_end()) return false;
    round_ends_.pop_front();
    return true;
}

}  // namespace st
