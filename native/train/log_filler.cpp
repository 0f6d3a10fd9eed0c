#include "train/log_filler.h"

#include <algorithm>

namespace st {

namespace {

constexpr i64 LOG_TAKE_WAIT_NS = 100'000'000;

}   // namespace

LogFilled LogFiller::fill(i64 slot, std::span<const Range> ranges) {
    batch_.open(arena_.slot(slot), capacity());
    batch_.tally().clear();
    LogFilled filled{};
    for (; filled.range < ranges.size() && filled.status == LogStatus::filled; ++filled.range)
        filled.status = fill(ranges[filled.range]);
    if (filled.status != LogStatus::filled) --filled.range;
    filled.rows = batch_.close();
    return filled;
}

LogStatus LogFiller::fill(const Range &range) {
    until_ = static_cast<u32>(std::min<u64>(u64{batch_.rows()} + range.trained, capacity()));
    batch_.limit(until_);
    source_.begin(range);
    for (i64 heard_ns = monotonic_ns(); !source_.ended();) {
        const std::span<const RecordView> records = source_.take(LOG_TAKE_WAIT_NS);
        if (records.empty()) {
            if (source_.lacks()) return LogStatus::lacking;
            if (monotonic_ns() - heard_ns > silence_ns_) return LogStatus::silent;
            continue;
        }
        fill(records, range);
        heard_ns = monotonic_ns();   // the time that decoding takes is not the source's
    }
    return LogStatus::filled;
}

void LogFiller::fill(std::span<const RecordView> records, const Range &range) {
    for (u64 i = 0; i < records.size() && batch_.rows() < until_; ++i) {
        if (i % BatchFiller::AHEAD == 0)
            batch_.look_ahead(&records[i], std::min<u64>(BatchFiller::AHEAD, records.size() - i));
        if (!records[i].value) continue;
        batch_.begin(records[i], records[i].offset == range.from_offset ? range.from_row : 0);
        batch_.next();
    }
}

}  // namespace st
