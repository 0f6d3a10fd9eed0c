#include "plan/tile_threads.h"

#include <pthread.h>

#include <string>
#include <system_error>

#include "base/fail.h"
#include "plan/waiting.h"

namespace st {

TileThreads::TileThreads(u32 threads) {
    threads_.reserve(threads);
    try {
        for (u32 thread = 1; thread < threads; ++thread) {
            threads_.emplace_back([this, thread] { loop(thread); });
            pthread_setname_np(threads_.back().native_handle(), "plan");   // as `top -H` and debuggers show it
        }
    } catch (const std::system_error &error) {
        leave();
        mistake("plan: threads", std::to_string(threads), error.what(), "set train.threads_per_worker lower");
    }
}

TileThreads::~TileThreads() { leave(); }

void TileThreads::leave() {
    leaving_.store(true, std::memory_order_relaxed);
    batches_.fetch_add(1);
    batches_.notify_all();
    for (std::thread &thread : threads_) thread.join();
}

void TileThreads::deal(Batch batch) {
    batch_ = batch;
    undone_.store(batch.tiles, std::memory_order_relaxed);
    left_.store(batch.tiles, std::memory_order_release);
    batches_.fetch_add(1);
    batches_.notify_all();
    take_tiles(0);
    wait_while(undone_, [](u32 tiles) { return tiles != 0; });
}

void TileThreads::loop(u32 thread) {
    u32 seen = 0;
    for (;;) {
        wait_while(batches_, [seen](u32 batches) { return batches == seen; });
        seen = batches_.load(std::memory_order_acquire);
        if (leaving_.load(std::memory_order_relaxed)) return;
        take_tiles(thread);
    }
}

// A thread that has come late finds none left, or those of a later batch, which are as good.
void TileThreads::take_tiles(u32 thread) {
    u32 left = left_.load(std::memory_order_acquire);
    while (left > 0) {
        if (!left_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel, std::memory_order_acquire))
            continue;
        batch_.work(batch_.of, thread, batch_.tiles - left);   // stays until undone_ is 0
        if (undone_.fetch_sub(1, std::memory_order_acq_rel) == 1) undone_.notify_all();
        left = left_.load(std::memory_order_acquire);
    }
}

}  // namespace st
