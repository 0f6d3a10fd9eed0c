// Named places where a test may kill the process: compiled in, one relaxed load when none is armed.
#pragma once
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <string>

namespace st {

struct Failpoints {
    std::atomic<bool> armed{false};
    std::map<std::string, int> left;   // hits until the kill; one thread of a process hits a given name

    static Failpoints &get() {
        static Failpoints failpoints;
        return failpoints;
    }
    void hit(const char *name) {
        auto found = left.find(name);
        if (found != left.end() && --found->second == 0) kill(getpid(), SIGKILL);
    }
};

}  // namespace st

#define ST_FAILPOINT(name)                                                                       \
    do {                                                                                         \
        if (st::Failpoints::get().armed.load(std::memory_order_relaxed)) st::Failpoints::get().hit(name); \
    } while (0)
