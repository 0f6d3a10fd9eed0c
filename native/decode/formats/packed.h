// Packed records: columns as they lie in memory (packed_column.h has the wire). Rows go into the slot a block at a
// time, column by column; a block in which a cell is missing or does not fit is read again row by row, with the
// reasons.
#pragma once
#include <algorithm>
#include <limits>
#include <type_traits>

#include "decode/packed_column.h"
#include "decode/record_decoder.h"
#include "decode/transpose.h"

namespace st::formats {

class PackedDecoder final : public RecordDecoder {
  public:
    explicit PackedDecoder(std::shared_ptr<const DecodePlan> plan)
        : RecordDecoder(plan), columns_(plan->columns.size()) {
        for (u32 c = 0; c < columns_.size(); ++c) columns_[c].column = c;
    }

    bool many() const override { return rows_ != 1; }

    std::string path(i32 column, i64 row) const override {
        return column == NO_COLUMN ? "$" : "$." + column_name(column) + "[" + std::to_string(row) + "]";
    }

  protected:
    void open(const char *bytes, u64 size) override {
        if (size < PACKED_HEADER_BYTES || std::memcmp(bytes, "STPK", 4) != 0)
            return refuse("$", "expected a packed record (\"STPK\" and a header of 16 bytes), got \"" +
                                   shown({bytes, std::min<u64>(size, 4)}) + "\" and " + std::to_string(size) +
                                   " bytes in all");
        const u32 version = load_little<u16>(bytes + 4);
        if (version != PACKED_VERSION)
            return refuse("$", "expected packed wire version 1, got " + std::to_string(version));
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
            if (fast_ && read_block(sink, row, count)) {
                sink.rows += count;
                tally.trained += count;
                row_ += count;
            } else {
                for (u32 i = 0; i < count; ++i) read_row(sink, tally);
            }
        }
        if (row_ == rows_) end_record();
    }

  private:
    static constexpr u32 BLOCK_ROWS = 256;

    // Most records have the directory of the one before, so that only addresses change.
    bool find_columns(const char *bytes, u64 size) {
        if (size == known_size_ && std::memcmp(bytes, known_.data(), known_.size()) == 0) {
            for (PackedColumn &column : columns_)
                if (column.data && !(column.type < PackedType::text ? column.move_to(bytes) : rebind(column, bytes)))
                    return false;
            return true;
        }
        known_size_ = 0;
        for (PackedColumn &column : columns_) column.data = column.nulls = nullptr;
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
        for (u32 i = load_little<u16>(bytes + 6); i; --i) {
            if (at + PACKED_ENTRY_BYTES > end) return refuse("$", "the directory is cut short"), false;
            const char *entry = bytes + at;
            const u64 name_bytes = load_little<u16>(entry + 14);
            at += (PACKED_ENTRY_BYTES + name_bytes + 3) & ~u64{3};
            if (at > end) return refuse("$", "the directory is cut short"), false;
            const i32 column = plan_->keys.find({entry + PACKED_ENTRY_BYTES, name_bytes});
            if (wanted(column) && !bind(columns_[column], entry, bytes, size)) return false;
        }
        return true;
    }

    bool bind(PackedColumn &column, const char *entry, const char *bytes, u64 size) {
        const u64 offset = load_little<u32>(entry), length = load_little<u32>(entry + 4),
                  nulls = load_little<u32>(entry + 8);
        const u8 type = static_cast<u8>(entry[12]);
        const char *problem = nullptr;
        if (type == 0 || type > static_cast<u8>(PackedType::words)) problem = "a type this build does not know";
        else if (offset + length > size) problem = "bytes behind the record's end (cut short?)";
        else if (nulls && nulls + (u64{rows_} + 7) / 8 > size) problem = "nulls behind the record's end (cut short?)";
        if (problem) return refuse_column(column, problem);
        column.type = static_cast<PackedType>(type);
        column.data_offset = static_cast<u32>(offset);
        column.data_bytes = static_cast<u32>(length);
        column.nulls_offset = static_cast<u32>(nulls);
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

    // Which columns go by whole blocks: float32 numbers that lie side by side in the slot are transposed, the rest one
    // by one.
    void sort_columns() {
        fast_ = true;
        absent_time_ms_ = -1;
        runs_.clear();
        sources_.clear();
        blocks_.clear();
        by_row_.clear();
        for (PackedColumn &column : columns_) {
            const PlanColumn &plan = plan_->columns[column.column];
            if (plan.target == Target::ignored) continue;
            if (!column.data) {
                if (plan.missing != Missing::value) fast_ = false;
                else if (plan.target == Target::event_time) absent_time_ms_ = plan.missing_time_ms;
                else blocks_.push_back(&column);
                continue;
            }
            const bool is_f32 = column.type == PackedType::f32;
            if (plan.target == Target::number && is_f32) {
                add_to_run(column, plan);
            } else if (plan.target == Target::number && column.type < PackedType::boolean) {
                blocks_.push_back(&column);
            } else if (is_f32 && (plan.target == Target::weight || plan.target == Target::label_number ||
                                  (plan.target == Target::label_binary && plan.class_count == 0))) {
                blocks_.push_back(&column);
            } else if (plan.target == Target::category && column.type == PackedType::words) {
                blocks_.push_back(&column);
            } else {
                by_row_.push_back(&column);
            }
        }
    }

    struct Run {
        u32 first_source, sources, row_offset;
    };

    void add_to_run(const PackedColumn &column, const PlanColumn &plan) {
        if (runs_.empty() || runs_.back().row_offset + 4 * runs_.back().sources != plan.row_offset)
            runs_.push_back({static_cast<u32>(sources_.size()), 0, plan.row_offset});
        ++runs_.back().sources;
        sources_.push_back(&column);
    }

    bool read_block(RowSink &sink, u32 row, u32 count) {
        for (const PackedColumn &column : columns_)
            if (column.data && column.any_null(row, row + count)) return false;
        u8 *const numbers = sink.slot + plan_->offset[NUMBERS] + sink.rows * plan_->stride[NUMBERS];
        pointers_.resize(sources_.size());
        for (u64 i = 0; i < sources_.size(); ++i) pointers_[i] = sources_[i]->data + u64{4} * row;
        for (const char *source : pointers_)   // 28 short streams are more than the processor's own prefetcher follows
            for (u32 at = 0; at < 4 * count; at += 64) __builtin_prefetch(source + at);
        for (const Run &run : runs_)
            if (!transpose(pointers_.data() + run.first_source, run.sources, count,
                           reinterpret_cast<f32 *>(numbers + run.row_offset), plan_->stride[NUMBERS] / 4))
                return false;
        for (const PackedColumn *column : blocks_)
            if (!read_column(*column, sink, row, count)) return false;
        i64 newest = std::max(sink.newest_event_time_ms, absent_time_ms_);
        if (!by_row_.empty() && !read_rows(sink, row, count, newest)) return false;
        sink.newest_event_time_ms = newest;
        if (plan_->weight_is_one && plan_->has[WEIGHT])
            std::fill_n(reinterpret_cast<f32 *>(sink.slot + plan_->offset[WEIGHT]) + sink.rows, count, 1.0f);
        return true;
    }

    // The cells of one column into every row of the block; false if one does not fit.
    bool read_column(const PackedColumn &column, RowSink &sink, u32 row, u32 count) {
        const PlanColumn &plan = plan_->columns[column.column];
        const u64 stride = plan_->stride[plan.block];
        u8 *to = sink.slot + plan_->offset[plan.block] + sink.rows * stride + plan.row_offset;
        if (!column.data) {
            for (u32 i = 0; i < count; ++i) std::memcpy(to + i * stride, &plan.missing_bits, 4);
            return true;
        }
        switch (column.type) {
            case PackedType::words: return read_words(column, to, stride, row, count);
            case PackedType::f32:
                if (plan.target == Target::label_binary)
                    return convert<f32, true>(column, to, stride, row, count,
                                              [](f32 v) { return (v == 0) | (v == 1); });
                if (plan.target == Target::weight)
                    return convert<f32>(column, to, stride, row, count, [](f32 v) { return (v >= 0) & is_finite(v); });
                return convert<f32>(column, to, stride, row, count, is_finite);
            case PackedType::f64: return convert<f64>(column, to, stride, row, count, is_finite);
            case PackedType::i8: return convert<i8>(column, to, stride, row, count, is_finite);
            case PackedType::i16: return convert<std::int16_t>(column, to, stride, row, count, is_finite);
            case PackedType::i32: return convert<i32>(column, to, stride, row, count, is_finite);
            case PackedType::i64: return convert<i64>(column, to, stride, row, count, is_finite);
            case PackedType::u8: return convert<u8>(column, to, stride, row, count, is_finite);
            case PackedType::u16: return convert<u16>(column, to, stride, row, count, is_finite);
            case PackedType::u32: return convert<u32>(column, to, stride, row, count, is_finite);
            case PackedType::u64: return convert<u64>(column, to, stride, row, count, is_finite);
            default: return false;
        }
    }

    static bool is_finite(f32 value) { return std::abs(value) <= std::numeric_limits<f32>::max(); }

    // Integers become double first, as the other formats have it.
    template <class T, bool POSITIVE_ZERO = false, class Fits>
    static bool convert(const PackedColumn &column, u8 *to, u64 stride, u32 row, u32 count, Fits fits) {
        const char *from = column.data + sizeof(T) * u64{row};
        return stride == 4
                   ? convert_to<T, POSITIVE_ZERO>(from, to, 4, count, fits)   // alone in its block: by whole vectors
                   : convert_to<T, POSITIVE_ZERO>(from, to, stride, count, fits);
    }

    template <class T, bool POSITIVE_ZERO, class Fits>
    [[gnu::always_inline]] static bool convert_to(const char *from, u8 *to, u64 stride, u32 count, Fits fits) {
        u32 bad = 0;
        for (u32 i = 0; i < count; ++i) {
            f32 value;
            if constexpr (std::is_same_v<T, f32>) value = load_little<T>(from + sizeof(T) * i);
            else value = static_cast<f32>(static_cast<f64>(load_little<T>(from + sizeof(T) * i)));
            bad |= !fits(value);
            if constexpr (POSITIVE_ZERO) value += 0.0f;   // a class has no negative zero
            std::memcpy(to + i * stride, &value, 4);
        }
        return !bad;
    }

    static bool read_words(const PackedColumn &column, u8 *to, u64 stride, u32 row, u32 count) {
        bool good = true;
        for (u32 i = 0; i < count; ++i) {
            const u32 code = load_little<u32>(column.data + 4 * u64{row + i});
            const i32 bucket = code < column.words.size() ? column.words[code] : -1;
            good &= bucket >= 0;
            std::memcpy(to + i * stride, &bucket, 4);
        }
        return good;
    }

    // The columns that have no whole-block way, row by row.
    bool read_rows(RowSink &sink, u32 row, u32 count, i64 &newest_event_time_ms) {
        for (u32 i = 0; i < count; ++i) {
            writer_.start(sink.slot, sink.rows + i);
            for (const PackedColumn *column : by_row_) {
                column->read_cell(writer_, row + i);
                if (writer_.failed() || !writer_.has(column->column)) return false;
            }
            newest_event_time_ms = std::max(newest_event_time_ms, writer_.event_time_ms());
        }
        return true;
    }

    void read_row(RowSink &sink, RowTally &tally) {
        start_row(sink);
        for (const PackedColumn &column : columns_)
            if (column.data) column.read_cell(writer_, static_cast<u32>(row_));
        end_row(sink, tally);
    }

    std::vector<PackedColumn> columns_;              // by the plan's columns
    std::vector<const PackedColumn *> sources_;      // of the runs
    std::vector<const PackedColumn *> blocks_, by_row_;
    std::vector<const char *> pointers_;
    std::vector<Run> runs_;
    u32 rows_ = 0;
    std::vector<char> known_;     // header and directory the columns were found by
    u64 known_size_ = 0;          // and the record's size; 0: none
    bool fast_ = false;
    i64 absent_time_ms_ = -1;   // of an event_time the record does not hold
};

inline std::unique_ptr<Decoder> packed(std::shared_ptr<const DecodePlan> plan) {
    return std::make_unique<PackedDecoder>(std::move(plan));
}

}  // namespace st::formats
