// Waiting across processes: a short spin, then the futex system call without the private flag, always with a time-out.
#pragma once
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "base/types.h"

namespace st {

inline i64 monotonic_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return i64{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline void spin_pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

constexpr i64 LOOK_AGAIN_NS = 100'000'000;   // how long a wait may miss a ring that a killed process left out

// Rung whenever one of the words it stands for has changed. A waiter that dies leaves `waiters` too high, which only
// costs the ringer a system call.
struct alignas(64) Event {
    std::atomic<u32> sequence;
    std::atomic<u32> waiters;

    void ring() {
        sequence.fetch_add(1, std::memory_order_seq_cst);
        if (waiters.load(std::memory_order_seq_cst) != 0)
            syscall(SYS_futex, reinterpret_cast<u32 *>(&sequence), FUTEX_WAKE, 1 << 30, nullptr, nullptr, 0);
    }

    // True once condition() holds, false at the deadline. 40 spins are about 1 us; more takes time from those waited
    // for where cores are few (train of a network, 2 cores: 2.5 M rows/s with 500, 2.8 M with 40).
    template <class Condition>
    bool wait(i64 deadline_ns, Condition condition) {
        for (int spin = 0; spin < 40; ++spin) {
            if (condition()) return true;
            spin_pause();
        }
        for (;;) {
            u32 seen = sequence.load(std::memory_order_seq_cst);
            waiters.fetch_add(1, std::memory_order_seq_cst);
            bool met = condition();
            i64 left_ns = deadline_ns - monotonic_ns();
            if (!met && left_ns > 0) {
                timespec timeout{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
                syscall(SYS_futex, reinterpret_cast<u32 *>(&sequence), FUTEX_WAIT, seen, &timeout, nullptr, 0);
            }
            waiters.fetch_sub(1, std::memory_order_seq_cst);
            if (met || condition()) return true;
            if (left_ns <= 0) return false;
        }
    }
};
static_assert(sizeof(Event) == 64 && std::atomic<u32>::is_always_lock_free);

}  // namespace st
