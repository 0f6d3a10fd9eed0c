// Rows → one slot, wherever the slot lies: the batch at hand, what became of the rows passed, the batch's end. Knows no
// ring. One thread at a time.
#pragma once
#include <memory>
#include <string>

#include "decode/decode_plan.h"
#include "decode/decoder.h"

namespace st {

class BatchFiller {
  public:
    // Of records in `format`. Throws std::invalid_argument for a format that there is not.
    BatchFiller(const std::string &format, std::shared_ptr<const DecodePlan> plan)
        : plan_(plan), decoder_(make_decoder(format, std::move(plan))) {}

    // An empty batch of at most `row_capacity` rows in a slot of the plan's layout, which stays in place until close().
    void open(u8 *slot, u32 row_capacity) { sink_ = {slot, 0, row_capacity, -1}; }
    // The batch is done: its slot tells its rows and is zero behind them. Gives their number.
    u32 close() {
        plan_->clear_behind(sink_.slot, sink_.rows);
        reinterpret_cast<SlotHeader *>(sink_.slot)->rows = sink_.rows;
        return sink_.rows;
    }

    u32 rows() const { return sink_.rows; }
    bool full() const { return sink_.rows == sink_.row_capacity; }
    i64 newest_event_time_ms() const { return sink_.newest_event_time_ms; }   // of the batch; -1: none

    // A record, as Decoder::begin().
    void begin(const u8 *bytes, u64 size, i64 from_row) { decoder_->begin(bytes, size, from_row); }
    // Rows of what was begun: true, it is done; false, the batch is full before. Adds to the tally.
    bool next() { return decoder_->next(sink_, tally_); }
    // The record at hand: where it stands, what its form is.
    const Decoder &record() const { return *decoder_; }

    // What became of the rows passed since it was cleared.
    RowTally &tally() { return tally_; }

  private:
    std::shared_ptr<const DecodePlan> plan_;
    std::unique_ptr<Decoder> decoder_;
    RowSink sink_;
    RowTally tally_;
};

}  // namespace st
