// Transforms over a block of rows that lie in a slot column by column, as columnar formats fill it: rows that are left
// out are taken from among the others.
#pragma once
#include <cstring>

#include "decode/column_span.h"

namespace st {

class BlockTransforms {
  public:
    // What became of the block: false, rows have to be read one by one; else rows.count are left, and `left_out` tells
    // the others, each with the column (NO_COLUMN: by `where`).
    bool finish(RowTransforms &transforms, RowBlock &rows, i64 newest_before_ms) {
        if (!run(transforms, rows)) return false;
        const i32 event_cell = rows.plan.transforms->event_cell;
        if (!left_out.empty() && event_cell >= 0) {
            CellColumn &times = rows.cells->columns[static_cast<u32>(event_cell)];
            each_left([&](u32 to, u32 from, u32 end) { move(times, to, from, end); }, rows.count);
            take_out(rows);
            set_newest(times, rows, newest_before_ms);
        } else {
            take_out(rows);
        }
        return put_made(rows);
    }

    // The same step by step. Makes the cells and finds who is left out: false where a missing one makes a row a dead
    // letter.
    bool run(RowTransforms &transforms, RowBlock &rows) {
        transforms.run(rows.count);
        return find_left_out(*rows.plan.transforms, transforms, rows);
    }

    // Moves the rows that stay together, in the slot and in the cells that are still to be put.
    void take_out(RowBlock &rows) {
        if (left_out.empty()) return;
        const auto move_rows = [&](u32 to, u32 from, u32 end) {
            for (const DecodePlan::At &block : rows.plan.blocks) {
                u8 *const first = rows.slot + block.offset + rows.first * block.stride;
                std::memmove(first + to * block.stride, first + from * block.stride, (end - from) * block.stride);
            }
            for (const Step &step : rows.plan.transforms->steps)
                for (const Made &made : step.results)
                    if (made.becomes_column) move(rows.cells->columns[made.cell], to, from, end);
        };
        rows.count = each_left(move_rows, rows.count);
    }

    // False where a made cell does not fit its column.
    bool put_made(RowBlock &rows) {
        for (const Step &step : rows.plan.transforms->steps)
            for (const Made &made : step.results)
                if (made.becomes_column && !put(made, rows.cells->columns[made.cell], rows)) return false;
        return true;
    }

    // Calls move(to, from, end) for rows that stay, side by side, behind one that does not; gives how many stay.
    template <class Move>
    u32 each_left(Move move, u32 count) const {
        u32 to = left_out.empty() ? count : left_out.front().row;
        for (u64 k = 0; k < left_out.size(); ++k) {
            const u32 from = left_out[k].row + 1, end = k + 1 < left_out.size() ? left_out[k + 1].row : count;
            move(to, from, end);
            to += end - from;
        }
        return to;
    }

    struct LeftOut {
        u32 row;      // of the block
        i32 column;
    };
    std::vector<LeftOut> left_out;

  private:
    // False where a missing cell makes a row a dead letter.
    bool find_left_out(const TransformPlan &plan, const RowTransforms &transforms, const RowBlock &rows) {
        left_out.clear();
        ends_.clear();
        for (const Step &step : plan.steps)
            for (const Made &made : step.results)
                if (made.becomes_column && ends_row(rows.plan.columns[made.column].missing) &&
                    rows.cells->columns[made.cell].any_missing(rows.count))
                    ends_.push_back(&made);
        for (u32 i = 0; i < rows.count && (plan.where >= 0 || !ends_.empty()); ++i) {
            if (transforms.leaves_out(i)) {
                left_out.push_back({i, NO_COLUMN});
                continue;
            }
            i32 skipped = NO_COLUMN;
            for (const Made *made : ends_) {
                if (rows.cells->columns[made->cell].given[i]) continue;
                if (rows.plan.columns[made->column].missing != Missing::skip) return false;
                if (skipped == NO_COLUMN) skipped = static_cast<i32>(made->column);
            }
            if (skipped != NO_COLUMN) left_out.push_back({i, skipped});
        }
        return true;
    }

    static void move(CellColumn &column, u32 to, u32 from, u32 end) {
        const auto shift = [=](auto &cells) {
            if (!cells.empty()) std::copy(cells.begin() + from, cells.begin() + end, cells.begin() + to);
        };
        shift(column.given), shift(column.numbers), shift(column.times), shift(column.texts), shift(column.hashes);
    }

    static void set_newest(const CellColumn &times, RowBlock &rows, i64 before_ms) {
        rows.newest_event_time_ms = before_ms;
        for (u32 i = 0; i < rows.count; ++i)
            rows.newest_event_time_ms = std::max(rows.newest_event_time_ms, times.times[i]);
    }

    bool put(const Made &made, const CellColumn &cells, RowBlock &rows) {
        const Kind &kind = *rows.plan.columns[made.column].kind;
        if (made.holds == Holds::text)
            return kind.takes_spans(CellType::text) && kind.put_texts(cells.texts.data(), rows);
        span_.type = CellType::f64;
        const void *data = cells.numbers.data();
        if (made.holds == Holds::time) span_.type = CellType::i64, data = cells.times.data();
        if (made.holds == Holds::hash) data = hashes(cells, *kind.hasher(), rows.count);
        if (made.holds == Holds::number && !kind.takes_spans(CellType::f64) && !(data = narrow(cells, rows.count)))
            return false;
        span_.data = static_cast<const char *>(data);
        span_.width = static_cast<u32>(bytes_of(span_.type));
        return kind.takes_spans(span_.type) && kind.put_span(span_, 0, rows);
    }

    const void *hashes(const CellColumn &cells, const TextHasher &hasher, u32 count) {
        span_.seed = hasher.seed;
        span_.type = hasher.bits == 64 ? CellType::hash64 : CellType::hash32;
        if (hasher.bits == 64) return cells.hashes.data();
        short_.resize(BLOCK_ROWS);
        for (u32 i = 0; i < count; ++i) short_[i] = static_cast<u32>(cells.hashes[i]);
        return short_.data();
    }

    // As float32, for kinds that look at a number before it is rounded; nullptr where one would be.
    const void *narrow(const CellColumn &cells, u32 count) {
        span_.type = CellType::f32;
        floats_.resize(BLOCK_ROWS);
        bool exact = true;
        for (u32 i = 0; i < count; ++i) {
            floats_[i] = static_cast<f32>(cells.numbers[i]);
            exact &= static_cast<f64>(floats_[i]) == cells.numbers[i];
        }
        return exact ? floats_.data() : nullptr;
    }

    std::vector<const Made *> ends_;   // of which a missing cell ends a row, and there is one
    ColumnSpan span_;
    std::vector<u32> short_;
    std::vector<f32> floats_;
};

}  // namespace st
