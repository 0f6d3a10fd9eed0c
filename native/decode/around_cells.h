// Cells of columns that come from the message around a record: the same in all of its rows, read once.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "decode/column_span.h"

namespace st {

class AroundCells {
  public:
    // Throws std::invalid_argument for what no message has.
    explicit AroundCells(std::shared_ptr<const DecodePlan> plan) : plan_(std::move(plan)) {
        for (u32 c = 0; c < plan_->columns.size(); ++c) {
            const PlanColumn &column = plan_->columns[c];
            if (column.from.empty()) continue;
            const Part part = part_of(column.from);
            if (column.kind) cells_.push_back({.column = c, .kind = column.kind.get(), .part = part});
        }
        if (cells_.empty()) return;
        numbers_.resize(BLOCK_ROWS);
        texts_.resize(BLOCK_ROWS);
    }

    bool any() const { return !cells_.empty(); }

    // Those of a record, which stays in place as long as they are put.
    void take(const RecordView &record) {
        for (Cell &cell : cells_) {
            cell.is_text = cell.part == Part::key || cell.part == Part::header;
            cell.number = cell.part == Part::timestamp   ? record.timestamp_ms
                          : cell.part == Part::partition ? record.partition
                                                         : record.offset;
            cell.text = text_of(record, cell);
            cell.missing = cell.is_text ? cell.text.empty() : cell.number < 0;
            cell.good = !cell.is_text || is_utf8(cell.text);
            cell.known = cell.is_text && cell.good && !cell.missing ? cell.kind->word(cell.text) : Kind::NO_WORD;
        }
    }

    // Into a row, behind what the record has given.
    void put(RowWriter &row) const {
        for (const Cell &cell : cells_) {
            if (cell.missing) continue;
            if (!cell.is_text) row.integer(cell.column, static_cast<u64>(cell.number), false);
            else if (!cell.good) row.wrong(cell.column, "text that is not UTF-8");
            else if (cell.known >= 0) row.word(cell.column, cell.text, cell.known);
            else row.text(cell.column, cell.text);
        }
    }

    // Into rows at once; false where they have to be read one by one.
    bool put(RowBlock &rows) {
        for (const Cell &cell : cells_)
            if (!put_cell(cell, rows)) return false;
        return true;
    }

  private:
    enum class Part : u8 { key, header, timestamp, partition, offset };
    struct Cell {
        u32 column = 0;
        const Kind *kind = nullptr;
        Part part = Part::key;
        bool is_text = false, missing = false, good = false;
        i64 number = 0;
        std::string_view text;
        i32 known = Kind::NO_WORD;   // what the kind knows of the text
    };
    static constexpr std::string_view HEADER = "headers.";

    static Part part_of(const std::string &from) {
        if (from == "key") return Part::key;
        if (from == "timestamp") return Part::timestamp;
        if (from == "partition") return Part::partition;
        if (from == "offset") return Part::offset;
        if (from.starts_with(HEADER)) return Part::header;
        throw std::invalid_argument(from + ": no message has one");
    }

    // Nothing is as an empty one.
    std::string_view text_of(const RecordView &record, const Cell &cell) const {
        const u8 *letters = nullptr;
        u64 size = 0;
        if (cell.part == Part::key) {
            letters = record.key, size = record.key_size;
        } else if (cell.part == Part::header && record.header) {
            const char *name = plan_->columns[cell.column].from.c_str() + HEADER.size();
            const DeadLetterHeader found = record.header(record.handle, name);
            letters = found.value, size = found.size;
        }
        return letters ? std::string_view(reinterpret_cast<const char *>(letters), size) : std::string_view();
    }

    bool put_cell(const Cell &cell, RowBlock &rows) {
        if (!cell.good) return false;
        if (cell.missing)
            return !ends_row(plan_->columns[cell.column].missing) && cell.kind->stand_in_span(rows);
        const bool is_word = cell.known >= 0 && cell.kind->takes_spans(CellType::words);
        if (cell.is_text && !is_word) {
            if (!cell.kind->takes_spans(CellType::text)) return false;
            std::fill_n(texts_.begin(), rows.count, cell.text);
            return cell.kind->put_texts(texts_.data(), rows);
        }
        span_.type = is_word ? CellType::words : CellType::i64;
        if (!cell.kind->takes_spans(span_.type)) return false;
        span_.words.assign(1, cell.known);
        std::fill_n(numbers_.begin(), rows.count, is_word ? 0 : cell.number);   // of a word: codes
        span_.data = reinterpret_cast<const char *>(numbers_.data());
        return cell.kind->put_span(span_, 0, rows);
    }

    std::shared_ptr<const DecodePlan> plan_;
    std::vector<Cell> cells_;
    ColumnSpan span_;
    std::vector<i64> numbers_;   // of a block of rows
    std::vector<std::string_view> texts_;
};

}  // namespace st
