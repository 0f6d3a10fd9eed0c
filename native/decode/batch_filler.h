// Rows → one slot, wherever rows and slot come from: the batch at hand, what became of the rows passed, the batch's
// end. Knows no ring. One thread at a time.
#pragma once
#include <limits>
#include <memory>
#include <string>

#include "decode/decode_plan.h"
#include "decode/decoder.h"
#include "decode/look_ahead.h"

namespace st {

class BatchFiller {
  public:
    // Of records in `format`. Throws std::invalid_argument for a format that there is not.
    BatchFiller(const RecordFormat &format, std::shared_ptr<const DecodePlan> plan)
        : plan_(plan), ahead_(LookAhead::of(format, *plan)), decoder_(make_decoder(format, std::move(plan))) {}
    // Of other sources alone.
    explicit BatchFiller(std::shared_ptr<const DecodePlan> plan) : plan_(std::move(plan)) {}

    const DecodePlan &plan() const { return *plan_; }

    // An empty batch of at most `row_capacity` rows in a slot of the plan's layout, which stays in place until close().
    void open(u8 *slot, u32 row_capacity) { sink_ = {slot, 0, row_capacity, -1}, full_ = false; }
    // The same in a slot of its own, of as many rows as the layout has.
    void open();
    // The batch holds no more than `rows` from now on.
    void limit(u32 rows) { sink_.row_capacity = rows; }
    // The batch is done: its slot tells its rows and is zero behind them. Gives their number.
    u32 close();

    const u8 *slot() const { return sink_.slot; }
    u32 rows() const { return sink_.rows; }
    bool full() const { return full_ || sink_.rows == sink_.row_capacity; }   // of rows, or of a block's values
    i64 newest_event_time_ms() const { return sink_.newest_event_time_ms; }   // of the batch; -1: none

    // Records that come next, AHEAD at most: what of them is better done together is done.
    static constexpr u64 AHEAD = 64;
    void look_ahead(const RecordView *records, u64 count) {
        if (ahead_) ahead_->look(records, count);
    }
    // A record, as Decoder::begin().
    void begin(const RecordView &record, i64 from_row = 0) {
        source_ = decoder_.get();
        decoder_->begin(record, from_row);
    }
    void begin(RowSource &source) { source_ = &source; }
    // Rows of what was begun: true, it is done; false, the batch is full before. Adds to the tally.
    bool next() {
        full_ = !source_->next(sink_, tally_);
        if (gathers_ && sink_.rows == sink_.row_capacity) settle();
        return !full_;
    }

    // As Decoder's: whether rows of records may wait, as next() is called, for settle(), which is to come before the
    // batch is closed.
    bool gather(bool on) { return gathers_ = decoder_->gather(on); }
    void number_record(u32 number) { decoder_->number_record(number); }
    void settle() { decoder_->settle(sink_); }
    bool gathers() const { return gathers_; }
    std::vector<LateRows> &late() { return decoder_->late(); }
    // The record at hand: where it stands, what its form is.
    const Decoder &record() const { return *decoder_; }

    // A record's rows up to its end, or the first `most` that can be trained, told and not kept: batches are emptied as
    // they become full. Adds to the tally.
    void count(const RecordView &record, i64 from_row, i64 most = std::numeric_limits<i64>::max());

    // What became of the rows passed since it was cleared.
    const RowTally &tally() const { return tally_; }
    RowTally &tally() { return tally_; }

  private:
    struct Free {
        void operator()(u8 *bytes) const;
    };

    std::shared_ptr<const DecodePlan> plan_;
    std::unique_ptr<LookAhead> ahead_;
    std::unique_ptr<Decoder> decoder_;
    RowSource *source_ = nullptr;
    RowSink sink_;
    bool full_ = false, gathers_ = false;
    RowTally tally_;
    std::unique_ptr<u8, Free> own_;   // made when first asked for
};

}  // namespace st
