// Records that a program puts in one after the other: what `fit` and training from files take.
#pragma once
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "source/source.h"

namespace st {

// One thread puts, one takes.
class MemorySource final : public Source {
  public:
    // Where a record stands. By default in the partition that is started first, its offset its number.
    struct Place { i32 partition = -1; i64 offset = -1, span = 1; };

    // Waits while so much lies here already; false when nobody takes any more, or at the deadline.
    bool put(std::string record, i64 deadline_ns, Place place);
    // What was put before, and what is put after, are of different rounds.
    void end_round();
    // Nothing follows; what was put is still taken.
    void end();
    // Nobody takes any more: put() returns.
    void close();

    void start(const std::vector<StartPosition> &positions) override;
    std::size_t take(RecordView *out, std::size_t capacity, i64 wait_ns) override;
    void release() override;
    bool ended() const override;
    bool ends_round() override;
    // The positions of the last start().
    std::vector<StartPosition> starts() const;

  private:
    bool at_round_end() const { return !round_ends_.empty() && round_ends_.front() == done_; }

    struct Held { std::string bytes; Place place; };
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Held> records_;   // the first `taken_` of them are out
    std::size_t taken_ = 0;
    std::vector<StartPosition> starts_;
    i32 partition_ = 0;
    i64 next_ = 0;                      // offset of the first one not taken
    std::deque<i64> round_ends_;        // records up to where rounds are to end, of those ever put
    i64 put_ = 0, done_ = 0;            // records ever put, ever taken
    u64 bytes_ = 0;
    bool ended_ = false, closed_ = false;
};

}  // namespace st
