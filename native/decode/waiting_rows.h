// Rows of row formats that lie in the slot but for what transforms make of them: a block of them is transformed at
// once, whichever records they are of.
#pragma once
#include <memory>
#include <vector>

#include "decode/block_transforms.h"

namespace st {

class WaitingRows {
  public:
    WaitingRows(std::shared_ptr<const DecodePlan> plan, RowWriter &writer)
        : plan_(std::move(plan)), writer_(writer), transforms_(plan_->transforms.get()) {
        const std::vector<Reading> &readings = plan_->transforms->readings;
        for (u64 k = 0; k < readings.size(); ++k)
            asked_.push_back({readings[k].column, &transforms_.cells.columns[k], &own().columns[k]});
        give_all();
    }

    bool is_full() const { return count_ == BLOCK_ROWS || transforms_.cells.letters.pages() >= MOST_PAGES; }

    // The row that comes next has its cells behind those that wait.
    void await_row() { writer_.cell_row().move_to(transforms_.cells, count_); }

    // The row that the writer has read, which is the slot's next: false where it is to be finished by itself, and will
    // not be trained.
    bool take(u32 record, i64 row) {
        if (!writer_.is_given()) return false;
        for (const Asked &each : asked_)
            if (!writer_.has(each.column)) each.cells->take_missing(count_);
        writer_.put_rest();
        rows_[count_++] = {row, writer_.event_time_ms(), record};
        await_row();
        return true;
    }

    // The same row goes on by itself.
    void give_back() {
        own().letters.clear();
        for (const Asked &each : asked_)
            if (writer_.has(each.column)) each.own->copy_cell(0, *each.cells, count_);
    }

    // Finishes them; adds to `late` what became of those that are not trained.
    void settle(RowSink &sink, std::vector<LateRows> &late) {
        if (!count_) return;
        RowBlock rows{*plan_, sink.slot, sink.rows - count_, count_, -1};
        rows.cells = &transforms_.cells;
        sink.rows -= count_;
        const bool none_dies = block_.run(transforms_, rows);
        if (none_dies) {
            block_.take_out(rows);
            tell_left_out(late);
        } else {
            block_.left_out.clear();
        }
        if (none_dies && block_.put_made(rows)) {
            for_each_left([&](u32 from, u32) { count_trained(sink, rows_[from].event_time_ms); });
        } else {
            for_each_left([&](u32 from, u32 at) { finish_by_itself(sink, rows.first + at, from, late); });
            std::ranges::stable_sort(late, {}, &LateRows::record);
        }
        count_ = 0;
        transforms_.cells.letters.clear();
        give_all();
        await_row();
    }

  private:
    static constexpr u64 MOST_PAGES = 4;   // of letters
    struct Asked {   // a column that transforms read
        u32 column;         // of the plan
        CellColumn *cells;
        CellColumn *own;    // of the writer
    };
    struct Row {
        i64 row, event_time_ms;
        u32 record;
    };

    void give_all() {   // but for those that take() finds missing
        for (const Asked &each : asked_) std::ranges::fill(each.cells->given, u8{1});
    }

    Cells &own() const { return writer_.transforms().cells; }

    // Calls take(from, at) for each row that is not left out: where it was in the block, and where it is.
    template <class Take>
    void for_each_left(Take take) const {
        auto left_out = block_.left_out.begin();
        for (u32 from = 0, at = 0; from < count_; ++from) {
            if (left_out != block_.left_out.end() && left_out->row == from) ++left_out;
            else take(from, at++);
        }
    }

    static RowTally &tally_of(std::vector<LateRows> &late, u32 record) {
        if (late.empty() || late.back().record != record) late.push_back({record, {}});
        return late.back().tally;
    }

    void tell_left_out(std::vector<LateRows> &late) const {
        for (const BlockTransforms::LeftOut &each : block_.left_out)
            tally_of(late, rows_[each.row].record).add_filtered(rows_[each.row].row, each.column);
    }

    static void count_trained(RowSink &sink, i64 event_time_ms) {
        ++sink.rows;
        sink.newest_event_time_ms = std::max(sink.newest_event_time_ms, event_time_ms);
    }

    // One of a block in which a row dies, the slot's row `place`, with the reason.
    void finish_by_itself(RowSink &sink, u32 place, u32 from, std::vector<LateRows> &late) {
        own().letters.clear();
        missing_.assign(plan_->columns.size(), 0);
        for (const Asked &each : asked_) {
            missing_[each.column] = !each.cells->given[from];
            each.own->copy_cell(0, *each.cells, from);
        }
        for (const DecodePlan::At &block : plan_->blocks) {
            u8 *const first = sink.slot + block.offset;
            std::memmove(first + sink.rows * block.stride, first + place * block.stride, block.stride);
        }
        const Row &row = rows_[from];
        writer_.take_up(sink.slot, sink.rows, row.event_time_ms, [this](u32 c) { return missing_[c]; });
        const RowEnd end = writer_.finish();
        if (end == RowEnd::trained) return count_trained(sink, writer_.event_time_ms());
        RowTally &tally = tally_of(late, row.record);
        const i32 column = writer_.failed_column();
        if (end == RowEnd::filtered) return tally.add_filtered(row.row, column);
        tally.add_dead(row.row, column, writer_.reason(), [&](i64) { return plan_->columns[column].made_path(); });
    }

    std::shared_ptr<const DecodePlan> plan_;
    RowWriter &writer_;
    RowTransforms transforms_;
    BlockTransforms block_;
    std::vector<Asked> asked_;
    u32 count_ = 0;
    std::vector<Row> rows_ = std::vector<Row>(BLOCK_ROWS);
    std::vector<u8> missing_;   // by column
};

}  // namespace st
