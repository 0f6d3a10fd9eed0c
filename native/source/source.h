// Where records come from: what ingest takes them by, whatever they lie in.
#pragma once
#include <stdexcept>
#include <vector>

#include "ring/arena.h"
#include "source/record.h"

namespace st {

// One thread calls it. Records of a partition come in the order of their offsets, from the position it was started at.
class Source {
  public:
    virtual ~Source() = default;
    // From now on records come from these positions, one for each partition; again, from others, after a failure.
    virtual void start(const std::vector<StartPosition> &positions) = 0;
    // A partition found later, from its beginning.
    virtual void add(i32) { throw std::logic_error("a source of fixed partitions"); }
    // Waits up to `wait_ns` for the first, then takes what is there. Throws what ends the run.
    virtual std::size_t take(RecordView *out, std::size_t capacity, i64 wait_ns) = 0;
    // The views of the last take() are done with.
    virtual void release() = 0;
    // Everything of a bounded range was taken; never, without a bound.
    virtual bool ended() const = 0;
    // A round ends behind what was taken; told once.
    virtual bool ends_round() { return false; }
    // What comes of a partition is of no use until the next start(); it may come all the same.
    virtual void hold(i32) {}
    // Nothing will be taken for a while; and again it will.
    virtual void pause(bool) {}
};

}  // namespace st
