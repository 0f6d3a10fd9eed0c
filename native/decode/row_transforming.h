// The row writer's part at a row's end: one without any column is refused; it is transformed by itself, or waits for
// others (waiting_rows.h).
#pragma once
#include "decode/row_writer.h"

namespace st {

// Whether the row lacks nothing but what transforms make of it: no cell is wrong, and none that is missing ends it, nor
// do the cells of all heads, of which none is made where others are not.
inline bool RowWriter::is_given() {
    if (failed_) return false;
    lacks_some_ = any_unseen(awaited_);
    if (!lacks_some_) return true;
    u32 heads = 0, missing_heads = 0;
    for (u32 c = 0; c < seen_.size(); ++c) {
        if (!awaited_[c]) continue;
        const bool is_head = columns_[c].missing == Missing::head, is_missing = seen_[c] != stamp_;
        if (is_missing && ends_row(columns_[c].missing)) return false;
        heads += is_head;
        missing_heads += is_head && is_missing;
    }
    return heads == 0 || missing_heads < heads;
}

// Of such a row: all that transforms do not make.
inline void RowWriter::put_rest() {
    if (lacks_some_)
        for (u32 c = 0; c < seen_.size(); ++c)
            if (awaited_[c] && seen_[c] != stamp_) columns_[c].kind->stand_in(*this, c);
    put_constants();
}

// A cell that is null names its column.
inline bool RowWriter::is_empty() const {
    if (features_.empty() || failed_) return false;
    for (const u32 c : features_)
        if ((seen_[c] | 1) == (stamp_ | 1)) return false;
    return true;
}

[[gnu::noinline]] inline void RowWriter::refuse_empty(const NameList &others) {
    NameList wanted;
    for (const u32 c : features_) {
        const std::string_view place = columns_[c].place;
        wanted.add(place.substr(place.starts_with('.')));
    }
    fail_whole("expected some of the job's columns " + wanted.text() + ", got " +
               (others.any() ? "only " + others.text() : "no name"));
}

// Those of which is_missing() are missing.
template <class IsMissing>
void RowWriter::take_up(u8 *slot, u64 row, i64 event_time_ms, IsMissing is_missing) {
    start(slot, row);
    for (u32 c = 0; c < seen_.size(); ++c) seen_[c] = columns_[c].is_made || is_missing(c) ? 0 : stamp_;
    event_time_ms_ = event_time_ms;
}

inline bool RowWriter::transform_row() {
    if (failed_whole_) return true;
    const TransformPlan &plan = *plan_->transforms;
    std::vector<CellColumn> &columns = transforms_.cells.columns;
    for (u64 k = 0; k < plan.readings.size(); ++k) {
        const Reading &reading = plan.readings[k];
        if (!has(reading.column)) {
            columns[k].take_missing(0);
            continue;
        }
        columns[k].given[0] = 1;
    }
    transforms_.run(1);
    if (transforms_.leaves_out(0)) {
        for (const u32 c : plan.where_columns)
            if (wrong_[c] == stamp_) return true;
        failed_ = false;
        failed_column_ = NO_COLUMN;
        return false;
    }
    for (const Step &step : plan.steps)
        for (const Made &made : step.results)
            if (made.becomes_column && columns[made.cell].given[0]) put_made(made, columns[made.cell]);
    return true;
}

inline void RowWriter::put_made(const Made &made, const CellColumn &cells) {
    const Kind &kind = *columns_[made.column].kind;
    if (made.holds == Holds::number) number(made.column, cells.numbers[0]);
    else if (made.holds == Holds::text) kind.text(*this, made.column, cells.texts[0]);
    else if (made.holds == Holds::time) kind.moment(*this, made.column, cells.times[0], {1, 1});
    else kind.hashed(*this, made.column, {cells.hashes[0], *kind.hasher()});
}

}  // namespace st
