// Named places where a test may kill the process: compiled in, one relaxed load when none is armed.
#pragma once
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <string>

#include "base/types.h"

namespace st {

struct Failpoints {
    std::atomic<bool> armed{false};
    struct Armed {
        i64 left;     // hits until the signal; the value it waits for with hit_at
        int signal;
    };
    std::map<std::string, Armed> points;   // one thread of a process hits a given name

    static Failpoints &get() {
        static Failpoints failpoints;
        return failpoints;
    }
    // `hit`: the number of the hit, or the value that hit_at() waits for.
    void arm(const std::string &name, i64 hit, int signal) {
        points[name] = {hit, signal};
        armed.store(true);
    }
    void hit(const char *name) {
        auto found = points.find(name);
        if (found != points.end() && --found->second.left == 0) die(found->second.signal);
    }
    void hit_at(const char *name, i64 value) {
        auto found = points.find(name);
        if (found != points.end() && found->second.left == value) die(found->second.signal);
    }

  private:
    static void die(int signal) {
        ::signal(signal, SIG_DFL);
        kill(getpid(), signal);
    }
};

}  // namespace st

#define ST_FAILPOINT(name)                                                                       \
    do {                                                                                         \
        if (st::Failpoints::get().armed.load(std::memory_order_relaxed)) st::Failpoints::get().hit(name); \
    } while (0)

#define ST_FAILPOINT_AT(name, value)                                                                            \
    do {                                                                                                        \
        if (st::Failpoints::get().armed.load(std::memory_order_relaxed)) st::Failpoints::get().hit_at(name, value); \
    } while (0)
