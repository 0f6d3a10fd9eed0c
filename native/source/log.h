// The records that a round log's ranges touch, read again, range after range: a partition by a source of its own.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "source/source.h"

namespace st {

class LogSource {
  public:
    // A source of one partition, not started yet, for what is there from an offset on. Where the partition has been
    // opened before, nothing reads with that one any more.
    using Open = std::function<std::shared_ptr<Source>(i32 partition, i64 offset)>;

    explicit LogSource(Open open) : open_(std::move(open)) {}

    // From now on: the records that this range touches, the one at its end only if some of its rows are in the range.
    // Throws what opening throws.
    void begin(const Range &range);
    // All of them were taken.
    bool ended() const { return wanted_ == 0; }
    // The next of them, in place until the next call: waits up to `wait_ns` for the first. None: nothing has come, or
    // the partition holds fewer than the range says. Throws what the source throws.
    std::span<const RecordView> take(i64 wait_ns);
    // The partition has none that could be the next.
    bool lacks() const { return lacks_; }

  private:
    struct Partition {
        std::shared_ptr<Source> source;
        std::vector<RecordView> views;
        std::size_t next = 0;   // of the views: ranges may share one, which stays
        i64 passed;             // offset of the newest one given or passed over
    };

    Partition &opened(i32 partition, i64 offset);
    // Views that lie before the range are passed over; false, and there are none left.
    bool find(Partition &partition) const;

    Open open_;
    std::map<i32, Partition> partitions_;
    Partition *at_hand_ = nullptr;
    i64 from_ = 0, end_ = 0;   // offsets of the range's records that are left
    u64 wanted_ = 0;
    bool shares_last_ = false, lacks_ = false;
};

}  // namespace st
