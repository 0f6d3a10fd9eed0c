#include "train/round_log.h"

#include <algorithm>

namespace st {

namespace {
constexpr i64 LOOK_AGAIN_NS = 100'000'000;   // how long a wait may miss a ring that a killed process left out
}  // namespace

RoundLogThread::RoundLogThread(Arena &arena) : arena_(arena) {}

RoundLogThread::~RoundLogThread() {
    leaving_.store(true);
    arena_.control().worker_event.ring();
    if (thread_.joinable()) thread_.join();
}

void RoundLogThread::start() {
    last_round_ = arena_.control().averager.finished_round.load();
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
    RoundEntry &entry = arena_.round_entry(round);
    Control &control = arena_.control();
    i64 count = entry.slot_count.load();
    i64 newest_event_ms = -1, newest_timestamp_ms = -1;
    std::lock_guard<std::mutex> lock(mutex_);
    for (i64 slot = entry.first_slot; slot < entry.first_slot + count; ++slot) {
        const SlotHeader &header = arena_.slot_header(slot);
        const SlotResult &result = arena_.slot_result(slot);
        const Range *ranges = arena_.slot_ranges(slot);
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
        (result.rejected ? record.dead : record.trained) += header.rows;
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
    record.workers = arena_.workers();
    record.closed_by = static_cast<u8>(entry.close_reason);
    record.statistics_pass = round == 0;
    record.newest_event_ms = newest_event_ms >= 0 ? newest_event_ms : newest_timestamp_ms;
    log_.rounds.push_back(record);
    last_round_ = round;
    control.coordinator.slots_released.store(entry.first_slot + count);
    control.coordinator_event.ring();
}

void RoundLogThread::loop() {
    Control &control = arena_.control();
    while (!leaving_.load()) {
        auto finished = [&] { return leaving_.load() || control.averager.finished_round.load() > last_round_; };
        control.worker_event.wait(monotonic_ns() + LOOK_AGAIN_NS, finished);
        while (!leaving_.load() && last_round_ < control.averager.finished_round.load()) gather_round(last_round_ + 1);
    }
}

}  // namespace st
