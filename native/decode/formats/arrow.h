// Arrow records: one IPC stream (arrow_stream.h) of a schema and any number of batches. All of it is looked through
// before its first row is read: what is broken anywhere is no record.
#pragma once
#include <utility>

#include "decode/arrow_stream.h"
#include "decode/columnar_decoder.h"

namespace st::formats {

class ArrowDecoder final : public ColumnarDecoder {
  public:
    explicit ArrowDecoder(std::shared_ptr<const DecodePlan> plan)
        : ColumnarDecoder(plan), stream_(*plan), columns_(plan->columns.size()) {
        for (u32 c = 0; c < columns_.size(); ++c) columns_[c].column = c, add_span(columns_[c]);
    }

    bool many() const override { return total_ != 1; }

  protected:
    void open(const char *bytes, u64 size) override {
        first_row_ = total_ = batch_rows_ = 0;
        if (is_refused(bytes, size)) return;
        if (!stream_.open(bytes, size)) return refuse_stream();
        u32 batches = 0, rows = 0;
        for (;; ++batches, total_ += rows) {
            const ArrowStream::Next found = next_batch(rows);
            if (found == ArrowStream::Next::broken) return refuse_stream();
            if (found == ArrowStream::Next::end) break;
        }
        if (total_ == 0) return end_record();
        if (batches == 1) {   // whose columns are at hand
            batch_rows_ = static_cast<u32>(total_);
            sort();
        } else {
            stream_.rewind();
        }
    }

    void step(RowSink &sink, RowTally &tally) override {
        while (row_ == first_row_ + batch_rows_) {   // the next batch, which has been looked at before
            first_row_ += batch_rows_;
            next_batch(batch_rows_);
            sort();
        }
        step_rows(sink, tally, first_row_, batch_rows_);
        if (row_ == total_) end_record();
    }

  private:
    ArrowStream::Next next_batch(u32 &rows) {
        bool moved;
        const ArrowStream::Next found = stream_.next(columns_, rows, moved);
        if (found != ArrowStream::Next::end && !moved) sorted_ = false;
        return found;
    }

    void sort() {
        if (!std::exchange(sorted_, true)) sort_columns();
    }

    void refuse_stream() {
        const i32 column = stream_.column();
        refuse(column == NO_COLUMN ? "$" : "$." + column_name(static_cast<u32>(column)), stream_.problem());
    }

    ArrowStream stream_;
    std::vector<ArrowColumn> columns_;   // by the plan's columns
    i64 first_row_ = 0, total_ = 0;
    u32 batch_rows_ = 0;                 // of the batch at hand, which begins with row first_row_
    bool sorted_ = false;                // for the columns as they are
};

inline std::unique_ptr<Decoder> arrow(std::shared_ptr<const DecodePlan> plan) {
    return std::make_unique<ArrowDecoder>(std::move(plan));
}

}  // namespace st::formats
