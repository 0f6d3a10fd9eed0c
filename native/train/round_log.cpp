#include "train/round_log.h"

#include <algorithm>

namespace st {

RoundLogThread::RoundLogThread(CoordinatorEnd &end) : end_(end) {}

RoundLogThread::~RoundLogThread() {
    leaving_.store(true);
    end_.wake();
    if (thread_.joinable()) thread_.join();
}

void RoundLogThread::start() {
    last_round_ = end_.finished_round();
    thread_ = std::thread([this] { loop(); });
}

GatheredLog RoundLogThread::take(i64 &last_round) {
    std::lock_guard<std::mutex> lock(mutex_);
    last_round = last_round_;
    GatheredLog taken;
    std::swap(taken, log_);
    return taken;
}

u64 RoundLogThread::waiting_bytes() {
    std::lock_guard<std::mutex> lock(mutex_);
    return log_.bytes();
}

void RoundLogThread::gather_round(i64 round) {
    const Arena &arena = end_.arena();
    const RoundEntry &entry = arena.round_entry(round);
    i64 count = entry.slot_count.load();
    i64 newest_event_ms = -1, newest_timestamp_ms = -1;
    std::lock_guard<std::mutex> lock(mutex_);
    for (i64 slot = entry.first_slot; slot < entry.first_slot + count; ++slot) {
        const SlotHeader &header = arena.slot_header(slot);
        const SlotResult &result = arena.slot_result(slot);
        const Range *ranges = arena.slot_ranges(slot);
        SlotRecord record{};
        record.slot = slot;
        record.rows = header.rows;
        record.range_count = header.range_count;
        record.loss_sum = result.loss_sum;
        record.weight_sum = result.weight_sum;
        record.rejected = static_cast<u8>(result.rejected);
        for (u32 r = 0; r < header.range_count; ++r) {
            record.dead += ranges[r].dead;
            record.filtered += ranges[r].filtered;
            record.tombstones += ranges[r].tombstones;
        }
        (result.rejected != Rejected::no ? record.dead : record.trained) += header.rows;
        log_.slots.push_back(record);
        log_.ranges.insert(log_.ranges.end(), ranges, ranges + header.range_count);
        newest_timestamp_ms = std::max(newest_timestamp_ms, header.newest_timestamp_ms);
        newest_event_ms = std::max(newest_event_ms, header.newest_event_time_ms);
    }
    log_.newest_timestamp_ms = std::max(log_.newest_timestamp_ms, newest_timestamp_ms);
    RoundRecord record{};
    record.round = round;
    record.first_slot = entry.first_slot;
    record.slots = static_cast<u32>(count);
    record.workers = arena.workers();
    record.closed_by = static_cast<u8>(entry.close_reason);
    record.statistics_pass = round == 0;
    record.closed_window = static_cast<u8>(entry.closed_window);
    record.newest_event_ms = newest_event_ms >= 0 ? newest_event_ms : newest_timestamp_ms;
    log_.rounds.push_back(record);
    last_round_ = round;
    end_.release_slots(entry.first_slot + count);
}

void RoundLogThread::loop() {
    while (!leaving_.load()) {
        end_.wait_round(last_round_ + 1, monotonic_ns() + LOOK_AGAIN_NS, [&] { return leaving_.load(); });
        while (!leaving_.load() && last_round_ < end_.finished_round()) gather_round(last_round_ + 1);
    }
}

}  // namespace st
