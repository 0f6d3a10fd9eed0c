// Float32 spans whose columns lie side by side in the slot, as float32 or float64: transposed together, which is what
// the packed format's speed is made of.
#pragma once
#include <type_traits>
#include <vector>

#include "decode/column_span.h"
#include "decode/transpose.h"

namespace st {

class FloatRuns {
  public:
    void clear() {
        runs_.clear();
        columns_.clear();
    }

    // The span of a column of plain floats, of cells f32. Columns come in the order of the plan.
    void add(const ColumnSpan &span, const PlainFloat &column) {
        const u32 offset = column.place.offset, bytes = column.is_double ? sizeof(f64) : sizeof(f32);
        if (runs_.empty() || runs_.back().offset + bytes * runs_.back().count != offset)
            runs_.push_back({static_cast<u32>(columns_.size()), 0, offset});
        ++runs_.back().count;
        columns_.push_back({&span, &column});
    }

    // Cells `row`, row + 1, ... of all spans into the rows; false where one is not finite.
    bool put(u32 row, const RowBlock &rows) {
        if (runs_.empty()) return true;
        return rows.plan.has_doubles ? put_as<f64>(row, rows) : put_as<f32>(row, rows);
    }

  private:
    template <class Slot>
    bool put_as(u32 row, const RowBlock &rows) {
        const Place floats{rows.plan.floats_block, 0};
        const u64 stride = rows.stride(floats) / sizeof(Slot);
        from_.resize(columns_.size());
        for (u64 i = 0; i < columns_.size(); ++i) from_[i] = columns_[i].span->data + u64{4} * row;
        for (const char *from : from_)   // 28 short streams are more than the processor's own prefetcher follows
            for (u32 at = 0; at < 4 * rows.count; at += 64) __builtin_prefetch(from + at);
        put_stand_ins(row, rows.count);
        for (const Run &run : runs_)
            if (!transpose(from_.data() + run.first, run.count, rows.count,
                           reinterpret_cast<Slot *>(rows.at(floats) + run.offset), stride))
                return false;
        return std::is_same_v<Slot, f32> || put_exact_stand_ins(row, rows);
    }

    // A column with missing cells goes by a copy that has the stand-in in their places.
    void put_stand_ins(u32 row, u32 count) {
        for (u64 i = 0; i < columns_.size(); ++i) {
            if (!columns_[i].span->nulls) continue;
            const RowMask missing = columns_[i].span->nulls_of(row, count);
            if (!missing.any()) continue;
            copies_.resize(columns_.size() * BLOCK_ROWS);
            f32 *copy = copies_.data() + i * BLOCK_ROWS;
            std::memcpy(copy, from_[i], u64{4} * count);
            missing.each([&, stand_in = static_cast<f32>(columns_[i].to->stand_in)](u32 at) { copy[at] = stand_in; });
            from_[i] = reinterpret_cast<const char *>(copy);
        }
    }

    // Where a double is not what the copy had in its place.
    bool put_exact_stand_ins(u32 row, const RowBlock &rows) const {
        for (const Column &column : columns_) {
            const f64 exact = column.to->stand_in;
            if (!column.span->nulls || exact == static_cast<f64>(static_cast<f32>(exact))) continue;
            u8 *const first = rows.at(column.to->place);
            const u64 stride = rows.stride(column.to->place);
            column.span->nulls_of(row, rows.count).each([=](u32 at) {
                std::memcpy(first + at * stride, &exact, sizeof exact);
            });
        }
        return true;
    }

    struct Column {
        const ColumnSpan *span;
        const PlainFloat *to;
    };
    struct Run {
        u32 first, count, offset;   // of the spans; bytes into the row
    };
    std::vector<Run> runs_;
    std::vector<Column> columns_;
    std::vector<const char *> from_;
    std::vector<f32> copies_;
};

}  // namespace st
