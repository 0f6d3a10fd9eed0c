// What columnar formats share: rows of spans go into the slot a block at a time, column by column, with stand-ins for
// missing cells. A row that a missing cell ends goes by itself, as do the rows of a block in which a cell does not fit,
// with the reasons.
#pragma once
#include <algorithm>

#include "decode/block_transforms.h"
#include "decode/float_runs.h"
#include "decode/record_decoder.h"

namespace st {

class ColumnarDecoder : public RecordDecoder {
  protected:
    explicit ColumnarDecoder(std::shared_ptr<const DecodePlan> plan) : RecordDecoder(std::move(plan)) {
        never_gathers();
    }

    std::string cell_path(i32 column, i64 row) const final {
        return column == NO_COLUMN ? "$" : "$." + column_name(column) + "[" + std::to_string(row) + "]";
    }

    // The record's span of a column of the plan, in the order of the plan; it stays in place.
    void add_span(ColumnSpan &span) { all_.push_back(&span); }

    // Rows from row() on of the spans, which begin with row `first_row` of the record.
    void step_rows(RowSink &sink, RowTally &tally, i64 first_row, u32 span_rows) {
        first_row_ = first_row;
        if (passing()) {
            row_ = std::min<i64>(from_row_, first_row + span_rows);
            return;
        }
        const u32 row = static_cast<u32>(row_ - first_row);
        const u32 count = std::min({BLOCK_ROWS, span_rows - row, sink.row_capacity - sink.rows});
        RowMask ended;
        for (const ColumnSpan *column : strict_) ended |= column->nulls_of(row, count);
        ended |= without_heads(row, count);
        for (u32 from = 0; from < count && !held();) {
            const u32 to = ended.first(from, count);
            read_rows(sink, tally, to - from);
            from = ended.first(to, count, false);
            for (u32 i = to; i < from && !held(); ++i) read_row(sink, tally);
        }
    }

    // Which columns go by whole blocks of rows: plain floats together, others one by one.
    void sort_columns() {
        fast_ = !(plan_->is_ragged && plan_->transforms);
        bool is_empty = plan_->refuses_empty;
        floats_.clear();
        spans_.clear();
        lists_.clear();
        absent_.clear();
        by_row_.clear();
        strict_.clear();
        sort_heads();
        for (ColumnSpan *each : all_) {
            ColumnSpan &column = *each;
            const PlanColumn &plan = plan_->columns[column.column];
            if (!wanted(static_cast<i32>(column.column))) continue;
            is_empty &= !column.data;
            if (!column.data) {
                if (ends_row(plan.missing) || plan.is_ragged) fast_ = false;
                else absent_.push_back(plan.kind.get());
                continue;
            }
            if (column.nulls && ends_row(plan.missing)) strict_.push_back(&column);
            if (plan.is_ragged) {
                lists_.push_back(&column);
                if (column.type != CellType::list || !plan.kind->takes_lists(column.each->type)) fast_ = false;
            } else if (column.type == CellType::f32 && plan.kind->plain_float()) {
                floats_.add(column, *plan.kind->plain_float());
            } else if (plan.kind->takes_spans(column.type)) {
                spans_.push_back(&column);
            } else {
                by_row_.push_back(&column);
                if (plan_->transforms) fast_ = false;   // cells of a row would take the place of the block's
            }
        }
        if (is_empty) fast_ = false;   // each row gets its reason
    }

  private:
    // The heads that the record holds. Where it holds none, whether a row has any label shows as the row is read; those
    // that transforms make fit no block where one is missing.
    void sort_heads() {
        heads_.clear();
        if (!plan_->heads) return;
        bool others = false;
        for (const PlanColumn &column : plan_->columns)
            others |= column.kind && column.missing == Missing::head && !column.is_made;
        for (const ColumnSpan *each : all_)
            if (each->data && plan_->columns[each->column].missing == Missing::head) heads_.push_back(each);
        if (heads_.empty() && others) fast_ = false;
    }

    // The rows that have none of the record's heads.
    RowMask without_heads(u32 row, u32 count) const {
        RowMask none;
        for (u64 h = 0; h < heads_.size(); ++h)
            if (h) none &= heads_[h]->nulls_of(row, count);
            else none = heads_[h]->nulls_of(row, count);
        return none;
    }

    static constexpr u32 FEW_ROWS = 6;   // are read faster one by one

    // Rows of which no missing cell ends one.
    void read_rows(RowSink &sink, RowTally &tally, u32 count) {
        u32 trained = count;
        if (fast_ && count > FEW_ROWS && read_block(sink, static_cast<u32>(row_ - first_row_), trained)) {
            for (const BlockTransforms::LeftOut &each : transforms_.left_out)
                tally.add_filtered(row_ + each.row, each.column);
            sink.rows += trained;
            tally.trained += trained;
            row_ += count;
        } else {
            for (u32 i = 0; i < count && !held(); ++i) read_row(sink, tally);
        }
    }

    // `count`: of the rows, and then of those that are not left out.
    bool read_block(RowSink &sink, u32 row, u32 &count) {
        RowBlock rows{*plan_, sink.slot, sink.rows, count, sink.newest_event_time_ms};
        if (plan_->transforms) rows.cells = &writer_.transforms().cells, rows.cells->letters.clear();
        if (around_.any() && !around_.put(rows)) return false;
        if (!floats_.put(row, rows)) return false;
        for (ColumnSpan *column : spans_)
            if (!read_span(*column, row, rows)) return false;
        for (const ColumnSpan *column : lists_)
            if (const Kind &kind = *plan_->columns[column->column].kind;
                !kind.put_lists(*column, row, rows, column->nulls_of(row, rows.count)))
                return false;
        for (const Kind *kind : absent_)
            if (!kind->stand_in_span(rows)) return false;
        if (!by_row_.empty() && !read_by_row(sink, row, rows)) return false;
        const i64 newest_before_ms = sink.newest_event_time_ms;
        if (plan_->transforms && !transforms_.finish(writer_.transforms(), rows, newest_before_ms)) return false;
        count = rows.count;
        sink.newest_event_time_ms = rows.newest_event_time_ms;
        for (const DecodePlan::Bits &constant : plan_->constants) rows.fill(constant.place, constant.bits);
        return true;
    }

    // Missing cells are given the bits of another one of the block, which puts nothing into it that is not there, and
    // then the stand-in's.
    bool read_span(ColumnSpan &column, u32 row, RowBlock &rows) {
        const Kind &kind = *plan_->columns[column.column].kind;
        const RowMask missing = column.nulls_of(row, rows.count);
        if (holds_texts(column.type)) return read_texts(column, row, missing, rows);
        if (!missing.any()) return kind.put_span(column, row, rows);
        const u32 other = missing.first(0, rows.count, false);
        if (other < rows.count) {
            const u64 width = column.width;
            copy_.assign(column.data + width * row, width * rows.count);
            char *const cells = copy_.data();
            missing.each([&](u32 at) { std::memcpy(cells + width * at, cells + width * other, width); });
            const char *const whole = std::exchange(column.data, cells);
            const bool good = kind.put_span(column, 0, rows);
            column.data = whole;
            if (!good) return false;
        }
        return stand_in(kind, missing, rows);
    }

    // The same of texts, of which empty ones are missing.
    bool read_texts(const ColumnSpan &column, u32 row, RowMask missing, RowBlock &rows) {
        const PlanColumn &plan = plan_->columns[column.column];
        const bool all_ascii = is_ascii(column.texts(row, row + rows.count));
        std::string_view other;
        for (u32 i = 0; i < rows.count; ++i) {
            texts_[i] = column.text_at(row + i);
            if (texts_[i].empty() && !missing.has(i) && plan.missing == Missing::head) return false;   // no null
            if (texts_[i].empty()) missing.add(i);
            else if (!all_ascii && !is_utf8(texts_[i])) return false;
            else if (other.empty() && !missing.has(i)) other = texts_[i];
        }
        if (!missing.any()) return plan.kind->put_texts(texts_, rows);
        if (ends_row(plan.missing)) return false;
        missing.each([&](u32 i) { texts_[i] = other; });
        return (other.empty() || plan.kind->put_texts(texts_, rows)) && stand_in(*plan.kind, missing, rows);
    }

    static bool stand_in(const Kind &kind, const RowMask &missing, RowBlock &rows) {
        rows.only = &missing;
        const bool good = kind.stand_in_span(rows);
        rows.only = nullptr;
        return good;
    }

    // The columns that have no whole-block way, row by row.
    bool read_by_row(RowSink &sink, u32 row, RowBlock &rows) {
        for (u32 i = 0; i < rows.count; ++i) {
            writer_.start(sink.slot, sink.rows + i);
            for (const ColumnSpan *column : by_row_) {
                column->read_cell(writer_, column->column, row + i);
                if (writer_.failed()) return false;
                if (writer_.has(column->column)) continue;
                const PlanColumn &plan = plan_->columns[column->column];
                if (ends_row(plan.missing) || plan.missing == Missing::head) return false;
                plan.kind->stand_in(writer_, column->column);
            }
            rows.newest_event_time_ms = std::max(rows.newest_event_time_ms, writer_.event_time_ms());
        }
        return true;
    }

    void read_row(RowSink &sink, RowTally &tally) {
        start_row(sink);
        for (const ColumnSpan *column : all_)
            if (column->data) column->read_cell(writer_, column->column, static_cast<u32>(row_ - first_row_));
        end_row(sink, tally);
    }

    std::vector<ColumnSpan *> all_;                  // by the plan's columns
    FloatRuns floats_;
    std::vector<ColumnSpan *> spans_;
    std::vector<const ColumnSpan *> lists_;          // into ragged blocks
    std::vector<const ColumnSpan *> by_row_;
    std::vector<const ColumnSpan *> strict_;         // whose missing cells end a row
    std::vector<const ColumnSpan *> heads_;          // in the record, all of whose missing cells do
    std::vector<const Kind *> absent_;               // whose stand-ins the record's rows have
    BlockTransforms transforms_;
    std::string copy_;   // of a block of cells
    std::string_view texts_[BLOCK_ROWS];
    i64 first_row_ = 0;
    bool fast_ = false;
};

}  // namespace st
