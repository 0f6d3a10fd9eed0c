// Frees every slot as soon as it is filled, so that ingest can be measured alone: what a run would do if training cost
// nothing. The counterpart of kafka/raw_consume in the ingest bench.
#pragma once
#include <thread>

#include "ring/arena.h"

namespace st {

class RingDrain {
  public:
    explicit RingDrain(Arena &arena);
    ~RingDrain();

  private:
    void loop();

    Arena &arena_;
    std::atomic<bool> leaving_{false};
    std::thread thread_;
};

}  // namespace st
