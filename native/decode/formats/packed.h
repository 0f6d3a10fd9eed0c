// Packed records: columns as they lie in memory (packed_column.h has the wire).
#pragma once
#include "decode/columnar_decoder.h"
#include "decode/packed_column.h"

namespace st::formats {

class PackedDecoder final : public ColumnarDecoder {
  public:
    explicit PackedDecoder(std::shared_ptr<const DecodePlan> plan)
        : ColumnarDecoder(plan), columns_(plan->columns.size()) {
        for (u32 c = 0; c < columns_.size(); ++c) columns_[c].column = c, add_span(columns_[c]);
    }

    bool many() const override { return rows_ != 1; }

  protected:
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
        step_rows(sink, tally, 0, rows_);
        if (row_ == rows_) end_record();
    }

  private:
    // Whether not only the directory says if a column can be read.
    static bool needs_check(CellType type) {
        return type == CellType::text || type == CellType::words || type == CellType::bytes || type == CellType::list;
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
        set_type(column, type, more);
        if (column.type == CellType::list) {
            const u8 of = static_cast<u8>(entry[13]);
            if (of == 0 || of >= static_cast<u8>(CellType::list) || of == static_cast<u8>(CellType::floats))
                return refuse_column(column, "lists of a type this build does not know");
            set_type(column.cells, of, more);
        }
        return rebind(column, bytes);
    }

    static void set_type(ColumnSpan &span, u8 type, u32 more) {
        span.type = static_cast<CellType>(type);
        span.width = span.type == CellType::fixed    ? more
                     : span.type == CellType::floats ? more * static_cast<u32>(sizeof(f32))
                                                     : static_cast<u32>(bytes_of(span.type));
        span.seed = more;
    }

    bool rebind(PackedColumn &column, const char *bytes) {
        if (const char *problem = column.bind(bytes, rows_)) return refuse_column(column, problem);
        column.check_words(plan_->columns[column.column]);
        if (column.type == CellType::list) column.cells.check_words(plan_->columns[column.column]);
        return true;
    }

    bool refuse_column(const PackedColumn &column, const char *problem) {
        known_size_ = 0;
        refuse("$." + column_name(column.column),
               "expected a column of " + std::to_string(rows_) + " rows, got " + problem);
        return false;
    }

    std::vector<PackedColumn> columns_;              // by the plan's columns
    std::vector<PackedColumn *> found_;              // of a directory, in its order
    u32 rows_ = 0;
    std::vector<char> known_;     // header and directory the columns were found by
    u64 known_size_ = 0;          // and the record's size; 0: none
};

inline std::unique_ptr<Decoder> packed(std::shared_ptr<const DecodePlan> plan) {
    return std::make_unique<PackedDecoder>(std::move(plan));
}

}  // namespace st::formats
