// Float32 spans whose columns lie side by side in the slot: transposed together, which is what the packed format's
// speed is made of.
#pragma once
#include <vector>

#include "decode/column_span.h"
#include "decode/transpose.h"

namespace st {

class FloatRuns {
  public:
    void clear() {
        runs_.clear();
        spans_.clear();
        stand_ins_.clear();
    }

    // The span of a column of plain floats, of cells f32. Columns come in the order of the plan.
    void add(const ColumnSpan &span, const PlainFloat &column) {
        const u32 offset = column.place.offset;
        if (runs_.empty() || runs_.back().offset + 4 * runs_.back().count != offset)
            runs_.push_back({static_cast<u32>(spans_.size()), 0, offset});
        ++runs_.back().count;
        spans_.push_back(&span);
        stand_ins_.push_back(column.stand_in);
    }

    // Cells `row`, row + 1, ... of all spans into the rows; false where one is not finite.
    bool put(u32 row, const RowBlock &rows) {
        if (runs_.empty()) return true;
        const Place floats{rows.plan.floats_block, 0};
        const u64 stride = rows.stride(floats) / 4;
        from_.resize(spans_.size());
        for (u64 i = 0; i < spans_.size(); ++i) from_[i] = spans_[i]->data + u64{4} * row;
        for (const char *from : from_)   // 28 short streams are more than the processor's own prefetcher follows
            for (u32 at = 0; at < 4 * rows.count; at += 64) __builtin_prefetch(from + at);
        put_stand_ins(row, rows.count);
        for (const Run &run : runs_)
            if (!transpose(from_.data() + run.first, run.count, rows.count,
                           reinterpret_cast<f32 *>(rows.at(floats) + run.offset), stride))
                return false;
        return true;
    }

  private:
    // A column with missing cells goes by a copy that has the stand-in in their places.
    void put_stand_ins(u32 row, u32 count) {
        for (u64 i = 0; i < spans_.size(); ++i) {
            if (!spans_[i]->nulls) continue;
            const RowMask missing = spans_[i]->nulls_of(row, count);
            if (!missing.any()) continue;
            copies_.resize(spans_.size() * BLOCK_ROWS);
            f32 *copy = copies_.data() + i * BLOCK_ROWS;
            std::memcpy(copy, from_[i], u64{4} * count);
            missing.each([&, stand_in = stand_ins_[i]](u32 at) { copy[at] = stand_in; });
            from_[i] = reinterpret_cast<const char *>(copy);
        }
    }

    struct Run {
        u32 first, count, offset;   // of the spans; bytes into the row
    };
    std::vector<Run> runs_;
    std::vector<const ColumnSpan *> spans_;
    std::vector<f32> stand_ins_;
    std::vector<const char *> from_;
    std::vector<f32> copies_;
};

}  // namespace st
