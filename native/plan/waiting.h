// Waiting for another thread of this process: a short spin, then asleep.
#pragma once
#include <atomic>

#include "ring/futex.h"

namespace st {

constexpr int TURNS_AWAKE = 1000;   // 15 to 40 us, less than a thread needs to fall asleep and wake

// Until not_yet(word) is false; whoever changes the word notifies.
template <class NotYet>
void wait_while(const std::atomic<u32> &word, NotYet not_yet) {
    u32 seen = word.load(std::memory_order_acquire);
    for (int turn = 0; turn < TURNS_AWAKE && not_yet(seen); ++turn) {
        spin_pause();
        seen = word.load(std::memory_order_acquire);
    }
    while (not_yet(seen)) {
        word.wait(seen, std::memory_order_acquire);
        seen = word.load(std::memory_order_acquire);
    }
}

}  // namespace st
