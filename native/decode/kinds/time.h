// When a row happened: milliseconds since 1970 beside the slot, in no block.
#pragma once
#include "decode/cell_kind.h"
#include "decode/time_kind.h"

namespace st::kinds {

class Time : public TimeKind {
  public:
    using TimeKind::TimeKind;

    // Of a block only the newest counts, and later is later in any unit.
    bool put_span(const ColumnSpan &span, u32 row, RowBlock &rows) const override {
        i64 newest = rows.newest_event_time_ms;
        if (!each_time(span, row, rows.count, [&](u32, i64 ms) { newest = std::max(newest, ms); })) return false;
        rows.newest_event_time_ms = newest;
        return true;
    }
    bool put_texts(const std::string_view *texts, RowBlock &rows) const override {
        i64 newest = rows.newest_event_time_ms;
        if (!each_text(texts, rows.count, [&](u32, i64 ms) { newest = std::max(newest, ms); })) return false;
        rows.newest_event_time_ms = newest;
        return true;
    }
    bool stand_in_span(RowBlock &rows) const override {
        rows.newest_event_time_ms = std::max(rows.newest_event_time_ms, missing_ms_);
        return true;
    }

  protected:
    void put(RowWriter &row, u32 c, i64 ms) const override { row.put_time(c, ms); }
};

// One that transforms read too, and one that nothing else does: into a column of cells.
class ReadTime final : public Time {
  public:
    ReadTime(const std::string &column, const Options &options, bool is_event)
        : Time(column, options), cell_(options), is_event_(is_event) {}

    bool put_span(const ColumnSpan &span, u32 row, RowBlock &rows) const override {
        i64 *to = cell_.times(rows);
        return each_time(span, row, rows.count, [to](u32 i, i64 ms) { to[i] = ms; }) && put_newest(rows);
    }
    bool put_texts(const std::string_view *texts, RowBlock &rows) const override {
        i64 *to = cell_.times(rows);
        return each_text(texts, rows.count, [to](u32 i, i64 ms) { to[i] = ms; }) && put_newest(rows);
    }
    bool stand_in_span(RowBlock &rows) const override {
        cell_.take_missing(rows);
        return !is_event_ || Time::stand_in_span(rows);
    }
    void stand_in(RowWriter &row, u32 c) const override {
        if (is_event_) row.put_time(c, missing_ms_);
    }

  protected:
    void put(RowWriter &row, u32 c, i64 ms) const override {
        if (is_event_) row.put_time(c, ms);
        cell_.put(row, c, ms);
    }

  private:
    bool put_newest(RowBlock &rows) const {
        const i64 *times = rows.cells->columns[cell_.place()].times.data();
        for (u32 i = 0; is_event_ && i < rows.count; ++i)
            rows.newest_event_time_ms = std::max(rows.newest_event_time_ms, times[i]);
        return true;
    }

    TimeCells cell_;
    const bool is_event_;
};

// What a transform gives to the model's plan: milliseconds in a block.
class TimeApart final : public TimeKind {
  public:
    using TimeKind::TimeKind;

    void place(SlotPlaces &places) override { place_ = places.take(sizeof(i64)); }
    bool takes_spans(CellType) const override { return false; }

  protected:
    void put(RowWriter &row, u32 c, i64 ms) const override { row.put(c, place_, ms); }

  private:
    Place place_;
};

inline std::unique_ptr<Kind> time(const std::string &column, const Options &options) {
    if (options.has("apart")) return std::make_unique<TimeApart>(column, options);
    if (options.has("cell")) return std::make_unique<ReadTime>(column, options, true);
    return std::make_unique<Time>(column, options);
}

}  // namespace st::kinds
