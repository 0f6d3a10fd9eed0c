// The order of tiles among threads: each of certain calls is made for tile t when it has been made for tile t - 1.
#pragma once
#include <atomic>
#include <memory>

#include "base/types.h"
#include "plan/waiting.h"

namespace st {

class TileOrder {
  public:
    explicit TileOrder(u32 calls) : done_(new Done[calls]), calls_(calls) {}

    void begin() {   // a batch; nobody is within a call
        for (u32 call = 0; call < calls_; ++call) done_[call].tiles.store(0, std::memory_order_relaxed);
    }
    template <class Make>
    void in_turn(u32 call, u32 tile, Make make) {
        std::atomic<u32> &done = done_[call].tiles;
        wait_while(done, [tile](u32 tiles) { return tiles != tile; });
        make();
        done.store(tile + 1, std::memory_order_release);
        done.notify_all();
    }

  private:
    struct alignas(64) Done {
        std::atomic<u32> tiles{0};
    };
    std::unique_ptr<Done[]> done_;
    u32 calls_;
};

}  // namespace st
