// Beats for a coordinator that lives in somebody else's program, whose Python may stand still for as long as it likes.
#pragma once
#include <condition_variable>
#include <mutex>
#include <thread>

#include "ring/coordinator_end.h"

namespace st {

// A thread of its own, from the making to stop(); `end` stays as long as this.
class Heartbeat {
  public:
    explicit Heartbeat(CoordinatorEnd &end) : end_(end), thread_([this] { loop(); }) {}
    Heartbeat(const Heartbeat &) = delete;
    Heartbeat &operator=(const Heartbeat &) = delete;
    ~Heartbeat() { stop(); }

    void stop() {
        {
            std::lock_guard lock(mutex_);
            stopped_ = true;
        }
        changed_.notify_all();
        if (thread_.joinable()) thread_.join();
    }

  private:
    static constexpr std::chrono::milliseconds EVERY{100};   // a hundredth of what the others bear

    void loop() {
        std::unique_lock lock(mutex_);
        do end_.beat();
        while (!changed_.wait_for(lock, EVERY, [this] { return stopped_; }));
    }

    CoordinatorEnd &end_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool stopped_ = false;
    std::thread thread_;   // last: it uses the others
};

}  // namespace st
