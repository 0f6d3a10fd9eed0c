// Threads that take the tiles of a batch, each the next by number, beside the thread that has the batch. They live as
// long as this object and sleep between batches. Nothing waits for a thread that has taken no tile: a fork of
// the process, which has none of them, goes on alone.
#pragma once
#include <atomic>
#include <thread>
#include <vector>

#include "base/types.h"

namespace st {

class TileThreads {
  public:
    explicit TileThreads(u32 threads);   // 2 or more, the caller's is the first; throws Mistake where there are none
    ~TileThreads();
    TileThreads(const TileThreads &) = delete;
    TileThreads &operator=(const TileThreads &) = delete;

    // Calls work(thread, tile) once for each tile, in each thread in ascending order; returns when all are done.
    // Allocates nothing; work throws nothing.
    template <class Work>
    void deal(u32 tiles, Work work) {
        deal({[](void *of, u32 thread, u32 tile) { (*static_cast<Work *>(of))(thread, tile); }, &work, tiles});
    }

  private:
    struct Batch {
        void (*work)(void *of, u32 thread, u32 tile);
        void *of;
        u32 tiles;
    };

    void deal(Batch batch);
    void loop(u32 thread);
    void take_tiles(u32 thread);
    void leave();

    Batch batch_{};                              // the caller's; read by whoever has taken a tile of it
    alignas(64) std::atomic<u32> left_{0};       // tiles that nobody has taken
    alignas(64) std::atomic<u32> undone_{0};     // tiles that are not done
    alignas(64) std::atomic<u32> batches_{0};    // counts up: there are tiles, or it is time to leave
    std::atomic<bool> leaving_{false};
    std::vector<std::thread> threads_;
};

}  // namespace st
