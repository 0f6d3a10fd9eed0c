// What librdkafka's threads have to say (log lines, broker errors, delivery failures): a bounded queue that Python
// drains.
#pragma once
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kafka/librdkafka.h"

namespace st {

struct KafkaEvent {
    int level;              // syslog: 2 the client cannot go on, 3 error, 4 warning, 6 info, 7 debug
    int code;               // librdkafka error code, 0 for a log line
    std::string facility;   // librdkafka's log facility; "ERROR", "DELIVERY" or "REBALANCE"
    std::string text;
};

class EventQueue {
  public:
    static constexpr std::size_t capacity = 256;   // a full queue drops the oldest: the newest says what is wrong now

    void push(KafkaEvent event) noexcept {
        try {
            std::lock_guard lock(mutex_);
            if (events_.size() == capacity) {
                events_.pop_front();
                ++dropped_;
            }
            events_.push_back(std::move(event));
        } catch (...) {   // out of memory inside a C callback: a lost log line, nothing more
        }
    }

    std::vector<KafkaEvent> drain() {
        std::lock_guard lock(mutex_);
        std::vector<KafkaEvent> out(std::make_move_iterator(events_.begin()), std::make_move_iterator(events_.end()));
        if (dropped_)
            out.insert(out.begin(), {4, 0, "DROPPED", std::to_string(dropped_) + " older events dropped"});
        events_.clear();
        dropped_ = 0;
        return out;
    }

  private:
    std::mutex mutex_;
    std::deque<KafkaEvent> events_;
    u64 dropped_ = 0;
};

}   // namespace st
