// Packed records: columns as they lie in memory (packed_column.h has the wire). Rows go into the slot a block at a
// time, column by column, with stand-ins for missing cells. A row that a missing cell ends goes by itself, as do the
// rows of a block in which a cell does not fit, with the reasons.
#pragma once
#include <algorithm>

#include "decode/block_transforms.h"
#include "decode/float_runs.h"
#include "decode/packed_column.h"
#include "decode/record_decoder.h"

namespace st::formats {

class PackedDecoder final : public RecordDecoder {
  public:
    explicit PackedDecoder(std::shared_ptr<const DecodePlan> plan)
        : RecordDecoder(plan), columns_(plan->columns.size()) {
        for (u32 c = 0; c < columns_.size(); ++c) columns_[c].column = c;
    }

    bool many() const override { return rows_ != 1; }

  protected:
    std::string cell_path(i32 column, i64 row) const override {
        return column == NO_COLUMN ? "$" : "$." + column_name(column) + "[" + std::to_string(row) + "]";
    }

    void open(const char *bytes, u64 size) override {
        if (is_refused(bytes, size)) return;
        if (size < PACKED_HEADER_BYTES || std::memcmp(bytes, "STPK", 4) != 0)
            return refuse("$", "expected a packed record (\"STPK\" and a header of 16 bytes), got \"" +
                                   shown({bytes, std::min<u64>(size, 4)}) + "\" and " + std::to_string(size) +
                                   " bytes in all");
        const u32 version = load_little<u16>(bytes + 4);
        if (version != PACKED_VERSION)
            return refuse("$", "expected packed wire version 2, got " + std::to_string(version));
        rows_ = load_little<u32>(bytes + 8);
        if (rows_ > size)
            return refuse("$", "the header claims " + std::to_string(rows_) + " rows, but the record has " +
                                   std::to_string(size) + " bytes");
        if (!find_columns(bytes, size)) return;
        if (rows_ == 0) end_record();
    }

    void step(RowSink &sink, RowTally &tally) override {
        const u32 row = static_cast<u32>(row_);
        if (passing()) {
            row_ = std::min<i64>(from_row_, rows_);
        } else {
            const u32 count = std::min({BLOCK_ROWS, rows_ - row, sink.row_capacity - sink.rows});
            RowMask ended;
            for (const PackedColumn *column : strict_) ended |= column->nulls_of(row, count);
            for (u32 from = 0; from < count && !held();) {
                const u32 to = ended.first(from, count);
                read_rows(sink, tally, to - from);
                from = ended.first(to, count, false);
                for (u32 i = to; i < from && !held(); ++i) read_row(sink, tally);
            }
        }
        if (row_ == rows_) end_record();
    }

  private:
    static constexpr u32 FEW_ROWS = 6;   // are read faster one by one

    // Whether not only the directory says if a column can be read.
    static bool needs_check(CellType type) {
        return type == CellType::text || type == CellType::words || type == CellType::bytes;
    }

    // Most records have the directory of the one before, so that only addresses change.
    bool find_columns(const char *bytes, u64 size) {
        if (size == known_size_ && std::memcmp(bytes, known_.data(), known_.size()) == 0) {
            for (PackedColumn &column : columns_)
                if (column.data && !(needs_check(column.type) ? rebind(column, bytes) : column.move_to(bytes)))
                    return false;
            return true;
        }
        known_size_ = 0;
        for (PackedColumn &column : columns_) column.data = column.nulls = column.entry = nullptr;
        if (!read_directory(bytes, size)) return false;
        sort_columns();
        known_.assign(bytes, bytes + PACKED_HEADER_BYTES + load_little<u32>(bytes + 12));
        known_size_ = size;
        return true;
    }

    bool read_directory(const char *bytes, u64 size) {
        const u64 end = PACKED_HEADER_BYTES + load_little<u32>(bytes + 12);
        if (end > size) return refuse("$", "the directory ends behind the record"), false;
        u64 at = PACKED_HEADER_BYTES;
        u32 left = load_little<u16>(bytes + 6);
        for (; left && at + PACKED_ENTRY_BYTES <= end; --left) {
            const char *entry = bytes + at;
            const u64 name_bytes = load_little<u16>(entry + 14);
            at += (PACKED_ENTRY_BYTES + name_bytes + 3) & ~u64{3};
            if (at > end) break;
            const i32 column = plan_->names.find({entry + PACKED_ENTRY_BYTES, name_bytes});
            if (wanted(column)) columns_[column].entry = entry;   // of one given twice the last counts
        }
        found_.clear();
        for (PackedColumn &column : columns_)
            if (column.entry) found_.push_back(&column);
        std::ranges::sort(found_, {}, &PackedColumn::entry);
        for (PackedColumn *column : found_)
            if (!bind(*column, column->entry, bytes, size)) return false;
        if (left) refuse("$", "the directory is cut short");
        return left == 0;
    }

    bool bind(PackedColumn &column, const char *entry, const char *bytes, u64 size) {
        const u64 offset = load_little<u32>(entry), length = load_little<u32>(entry + 4),
                  nulls = load_little<u32>(entry + 8);
        const u32 more = load_little<u32>(entry + 16);   // of the type
        const u8 type = static_cast<u8>(entry[12]);
        const char *problem = nullptr;
        if (type == 0 || type > static_cast<u8>(LAST_CELL_TYPE)) problem = "a type this build does not know";
        else if (offset + length > size) problem = "bytes behind the record's end (cut short?)";
        else if (nulls && nulls + (u64{rows_} + 7) / 8 > size) problem = "nulls behind the record's end (cut short?)";
        if (problem) return refuse_column(column, problem);
        column.type = static_cast<CellType>(type);
        column.data_offset = static_cast<u32>(offset);
        column.data_bytes = static_cast<u32>(length);
        column.nulls_offset = static_cast<u32>(nulls);
        if (column.type == CellType::floats && more > length / sizeof(f32))
            return refuse_column(column, rows_ ? "fewer bytes than rows need" : "lists longer than its bytes");
        column.width = column.type == CellType::fixed    ? more
                       : column.type == CellType::floats ? more * static_cast<u32>(sizeof(f32))
                                                         : static_cast<u32>(bytes_of(column.type));
        column.seed = more;
        return rebind(column, bytes);
    }

    bool rebind(PackedColumn &column, const char *bytes) {
        if (const char *problem = column.bind(bytes, rows_)) return refuse_column(column, problem);
        column.check_words(plan_->columns[column.column]);
        return true;
    }

    bool refuse_column(const PackedColumn &column, const char *problem) {
        known_size_ = 0;
        refuse("$." + column_name(column.column),
               "expected a column of " + std::to_string(rows_) + " rows, got " + problem);
        return false;
    }

    // Which columns go by whole blocks of rows: plain floats together, others one by one.
    void sort_columns() {
        fast_ = !plan_->is_ragged;
        floats_.clear();
        spans_.clear();
        absent_.clear();
        by_row_.clear();
        strict_.clear();
        for (PackedColumn &column : columns_) {
            const PlanColumn &plan = plan_->columns[column.column];
            if (!wanted(static_cast<i32>(column.column))) continue;
            if (!column.data) {
                if (ends_row(plan.missing)) fast_ = false;
                else absent_.push_back(plan.kind.get());
                continue;
            }
            if (column.nulls && ends_row(plan.missing)) strict_.push_back(&column);
            if (column.type == CellType::f32 && plan.kind->plain_float()) {
                floats_.add(column, *plan.kind->plain_float());
            } else if (plan.kind->takes_spans(column.type)) {
                spans_.push_back(&column);
            } else {
                by_row_.push_back(&column);
                if (plan_->transforms) fast_ = false;   // cells of a row would take the place of the block's
            }
        }
    }

    // Rows of which no missing cell ends one.
    void read_rows(RowSink &sink, RowTally &tally, u32 count) {
        u32 trained = count;
        if (fast_ && count > FEW_ROWS && read_block(sink, static_cast<u32>(row_), trained)) {
            for (const BlockTransforms::LeftOut &each : transforms_.left_out)
                report_filtered(tally, row_ + each.row, each.column);
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
        if (plan_->transforms) rows.cells = &writer_.cells(), rows.cells->letters.clear();
        if (around_.any() && !around_.put(rows)) return false;
        if (!floats_.put(row, rows)) return false;
        for (PackedColumn *column : spans_)
            if (!read_span(*column, row, rows)) return false;
        for (const Kind *kind : absent_)
            if (!kind->stand_in_span(rows)) return false;
        if (!by_row_.empty() && !read_by_row(sink, row, rows)) return false;
        if (plan_->transforms && !transforms_.finish(writer_, rows, sink.newest_event_time_ms)) return false;
        count = rows.count;
        sink.newest_event_time_ms = rows.newest_event_time_ms;
        for (const DecodePlan::Bits &constant : plan_->constants) rows.fill(constant.place, constant.bits);
        return true;
    }

    // Missing cells are given the bits of another one of the block, which puts nothing into it that is not there, and
    // then the stand-in's.
    bool read_span(PackedColumn &column, u32 row, RowBlock &rows) {
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
    bool read_texts(const PackedColumn &column, u32 row, RowMask missing, RowBlock &rows) {
        const PlanColumn &plan = plan_->columns[column.column];
        const bool all_ascii = is_ascii(column.texts(row, row + rows.count));
        std::string_view other;
        for (u32 i = 0; i < rows.count; ++i) {
            texts_[i] = column.text_at(row + i);
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
            for (const PackedColumn *column : by_row_) {
                column->read_cell(writer_, column->column, row + i);
                if (writer_.failed()) return false;
                if (writer_.has(column->column)) continue;
                const PlanColumn &plan = plan_->columns[column->column];
                if (ends_row(plan.missing)) return false;
                plan.kind->stand_in(writer_, column->column);
            }
            rows.newest_event_time_ms = std::max(rows.newest_event_time_ms, writer_.event_time_ms());
        }
        return true;
    }

    void read_row(RowSink &sink, RowTally &tally) {
        start_row(sink);
        for (const PackedColumn &column : columns_)
            if (column.data) column.read_cell(writer_, column.column, static_cast<u32>(row_));
        end_row(sink, tally);
    }

    std::vector<PackedColumn> columns_;              // by the plan's columns
    FloatRuns floats_;
    std::vector<PackedColumn *> found_, spans_;
    std::vector<const PackedColumn *> by_row_;
    std::vector<const PackedColumn *> strict_;       // whose missing cells end a row
    std::vector<const Kind *> absent_;               // whose stand-ins the record's rows have
    BlockTransforms transforms_;
    std::string copy_;   // of a block of cells
    std::string_view texts_[BLOCK_ROWS];
    u32 rows_ = 0;
    std::vector<char> known_;     // header and directory the columns were found by
    u64 known_size_ = 0;          // and the record's size; 0: none
    bool fast_ = false;
};

inline std::unique_ptr<Decoder> packed(std::shared_ptr<const DecodePlan> plan) {
    return std::make_unique<PackedDecoder>(std::move(plan));
}

}  // namespace st::formats
