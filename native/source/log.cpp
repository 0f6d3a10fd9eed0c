#include "source/log.h"

#include <algorithm>
#include <utility>

namespace st {

namespace {

constexpr std::size_t BATCH = 2048;   // views at a time

}   // namespace

void LogSource::begin(const Range &range) {
    shares_last_ = range.to_row > 0;
    from_ = range.from_offset;
    end_ = range.to_offset + (shares_last_ ? 1 : 0);
    wanted_ = u64{range.records} + (shares_last_ ? 1 : 0);
    lacks_ = false;
    if (wanted_ > 0) at_hand_ = &opened(range.partition, from_);   // else only control records, aborted, compacted ones
}

// Anew where a gap has led back in a partition that was cut short.
LogSource::Partition &LogSource::opened(i32 partition, i64 offset) {
    const auto found = partitions_.find(partition);
    if (found != partitions_.end()) {
        if (found->second.passed <= offset) return found->second;
        partitions_.erase(found);
    }
    Partition made{open_(partition, offset), {}, 0, offset - 1};
    made.source->start({{offset, 0, partition}});
    return partitions_.emplace(partition, std::move(made)).first->second;
}

bool LogSource::find(Partition &partition) const {
    for (; partition.next < partition.views.size(); ++partition.next) {
        const RecordView &view = partition.views[partition.next];
        if (view.hole) continue;
        if (view.offset >= from_) return true;
        partition.passed = view.offset;
    }
    return false;
}

std::span<const RecordView> LogSource::take(i64 wait_ns) {
    Partition &partition = *at_hand_;
    if (!find(partition)) {
        partition.source->release();
        partition.next = 0;
        partition.views.resize(BATCH);
        partition.views.resize(partition.source->take(partition.views.data(), BATCH, wait_ns));
        if (!find(partition)) return lacks_ = partition.source->ended(), std::span<const RecordView>{};
    }
    const auto first = partition.views.begin() + static_cast<std::ptrdiff_t>(partition.next);
    u64 count = 0;
    for (auto view = first; view != partition.views.end() && count < wanted_; ++view, ++count)
        if (view->hole || view->offset >= end_) break;
    lacks_ = count == 0;
    if (lacks_) return {};
    wanted_ -= count;
    partition.passed = first[static_cast<std::ptrdiff_t>(count) - 1].offset;
    from_ = partition.passed + 1;
    partition.next += count - (wanted_ == 0 && shares_last_ ? 1 : 0);
    return {&*first, count};
}

}  // namespace st
