// What self-describing formats share: one row, many rows, or columns; where a cell stands; cursors over an object of
// arrays.
#pragma once
#include "decode/record_decoder.h"

namespace st {

class ShapedDecoder : public RecordDecoder {
  public:
    bool many() const final { return shape_ != Shape::one; }

  protected:
    using RecordDecoder::RecordDecoder;

    std::string cell_path(i32 column, i64 row) const final {
        const std::string index = "[" + std::to_string(row) + "]";
        if (shape_ == Shape::columns) return column == NO_COLUMN ? "$" : "$." + column_name(column) + index;
        const std::string at = shape_ == Shape::one ? "$" : "$" + index;
        return column == NO_COLUMN ? at : at + plan_->columns[column].place;
    }

    enum class Shape { one, many, lines, columns };

    struct ColumnCursor {
        u32 column = 0;
        const char *at = nullptr;   // its next cell; nullptr: absent
        i64 rows = -1;              // -1: not an array
    };

    // Makes columns_ of found_ (by column; the last one given counts). False: their lengths differ, the record is
    // refused.
    bool columns_agree() {
        columns_.clear();
        for (const ColumnCursor &cursor : found_)
            if (cursor.at) columns_.push_back(cursor);
        for (const ColumnCursor &cursor : columns_) {
            if (cursor.rows == columns_[0].rows && cursor.rows >= 0) continue;
            refuse("$." + column_name(cursor.column),
                   "expected an array of as many values as in the other columns, got " +
                       (cursor.rows < 0 ? "no array" : std::to_string(cursor.rows) + " values where $." +
                                                           column_name(columns_[0].column) + " has " +
                                                           std::to_string(columns_[0].rows)));
            return false;
        }
        return true;
    }

    // The meaning of the first key that the job knows in an object: an array there shows columns, or it is a row
    // in any case. A column of lists shows neither.
    enum class Sign { none, by_array, row };
    Sign sign_of(i32 target) const {
        const i32 named = plan_->tree.named(target);
        const bool is_list = named != NO_COLUMN && writer_.form(static_cast<u32>(named)) != CellForm::value;
        if (named != NO_COLUMN && !is_list) return Sign::by_array;
        const bool holds_cells = target < 0 && !plan_->tree.node(node_of(target)).columns.empty();
        return is_list && !holds_cells ? Sign::none : Sign::row;
    }

    void wrong_count(u64 got) {
        const u64 full = plan_->array_columns.size(), brief = plan_->short_columns.size();
        writer_.fail_whole("expected " + std::to_string(full) + " values" +
                           (brief ? " (or " + std::to_string(brief) + " without label and weight)" : "") + ", got " +
                           std::to_string(got));
    }

    Shape shape_ = Shape::one;
    std::vector<ColumnCursor> found_, columns_;
};

}  // namespace st
