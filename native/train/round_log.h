// The coordinator's native thread: as soon as a round is averaged it copies the round's log out of the arena and frees
// the slots, so that a slow transaction never holds the ring. Python takes what has gathered.
#pragma once
#include <mutex>
#include <thread>
#include <vector>

#include "ring/coordinator_end.h"

namespace st {

// As they go into the round log.
struct RoundRecord {
    i64 round, first_slot;
    u32 slots, workers;
    u8 closed_by;            // CloseReason
    u8 statistics_pass;      // 1 for a lineage's first round
    u8 closed_window;        // 1: at its end the window that was open closed
    u8 reserved[5];
    i64 newest_event_ms;     // newest event time of its rows, else record timestamp; -1 if there is neither
};
static_assert(sizeof(RoundRecord) == 40);

struct SlotRecord {
    i64 slot;
    u32 rows, trained, dead, filtered, tombstones, range_count;   // a rejected slot's rows are dead
    f64 loss_sum, weight_sum;
    u8 rejected;             // Rejected
    u8 reserved[7];
};
static_assert(sizeof(SlotRecord) == 56);

struct GatheredLog {
    std::vector<RoundRecord> rounds;
    std::vector<SlotRecord> slots;
    std::vector<Range> ranges;
    i64 newest_timestamp_ms = -1;   // of the records in it
    u64 bytes() const {
        return rounds.size() * sizeof(RoundRecord) + slots.size() * sizeof(SlotRecord) + ranges.size() * sizeof(Range);
    }
};

class RoundLogThread {
  public:
    explicit RoundLogThread(CoordinatorEnd &end);
    ~RoundLogThread();
    void start();
    // What has gathered since the last call; `last_round` is the newest round in it or in an earlier one.
    GatheredLog take(i64 &last_round);
    u64 waiting_bytes();

  private:
    void loop();
    void gather_round(i64 round);

    CoordinatorEnd &end_;
    std::mutex mutex_;
    GatheredLog log_;
    i64 last_round_ = -1;
    std::atomic<bool> leaving_{false};
    std::thread thread_;
};

}  // namespace st
