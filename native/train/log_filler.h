// A log's hand on the ring: a slot's rows are those of its ranges, read again. Rows are BatchFiller's as everywhere;
// the cuts, which SlotFiller makes, are the log's.
#pragma once
#include "decode/batch_filler.h"
#include "ring/arena.h"
#include "source/log.h"

namespace st {

enum class LogStatus : u32 {
    filled = 0,
    lacking = 1,   // a partition holds fewer records than the range says
    silent = 2,    // nothing came for so long
};

struct LogFilled {
    LogStatus status;
    u32 rows;    // of the slot
    u64 range;   // that was not filled, of those given
};

class LogFiller {
  public:
    // The arena and the source stay as long as this. `silence_ns`: how long the source may give nothing.
    LogFiller(Arena &arena, LogSource &source, i64 silence_ns, BatchFiller batch)
        : arena_(arena), source_(source), silence_ns_(silence_ns), batch_(std::move(batch)) {}
    LogFiller(const LogFiller &) = delete;

    // The rows of these ranges, in their order, into the slot. Throws what the source throws.
    LogFilled fill(i64 slot, std::span<const Range> ranges);

  private:
    LogStatus fill(const Range &range);
    void fill(std::span<const RecordView> records, const Range &range);
    u32 capacity() const { return batch_.plan().layout.row_capacity; }

    Arena &arena_;
    LogSource &source_;
    i64 silence_ns_;
    BatchFiller batch_;
    u32 until_ = 0;   // rows of the batch up to the end of the range at hand
};

}  // namespace st
