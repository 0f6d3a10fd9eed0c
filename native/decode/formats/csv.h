// CSV records: a line is a row, its cells in column order, or in that of the names in the first line. All cells are
// text, so that a number needs no leave to be written as one.
#pragma once
#include "decode/csv_text.h"
#include "decode/record_decoder.h"

namespace st::formats {

class CsvDecoder final : public RecordDecoder {
  public:
    CsvDecoder(std::shared_ptr<const DecodePlan> plan, const Options &options)
        : RecordDecoder(plan), csv_(options.get<std::string>("delimiter", ",").at(0),
                                    options.get<std::string>("quote", "\"").at(0)),
          has_header_(options.get<bool>("header")), delimiter_(csv_.stop().delimiter) {
        for (u32 column : plan_->array_columns) full_.push_back(cell_of(static_cast<i32>(column)));
        for (u32 column : plan_->short_columns) brief_.push_back(cell_of(static_cast<i32>(column)));
    }

    bool many() const override { return row_ != 1; }

  protected:
    std::string cell_path(i32 column, i64 row) const override {
        const std::string at = "$[" + std::to_string(row) + "]";
        return column == NO_COLUMN ? at : at + "." + column_name(column);
    }

    void open(const char *bytes, u64 size) override {
        if (is_refused(bytes, size)) return;
        csv_.load(bytes, size);
        cursor_ = csv_.behind_breaks(csv_.begin());
        if (has_header_ && !pass_header()) return refuse("$", csv_.problem());
        if (cursor_ == csv_.end()) end_record();
    }

    void step(RowSink &sink, RowTally &tally) override {
        start_row(sink);
        const char *const p = read_line(cursor_);
        if (!p) return refuse(path(NO_COLUMN, row_), csv_.problem());
        end_row(sink, tally);
        cursor_ = csv_.behind_breaks(p);
        if (cursor_ == csv_.end()) end_record();
    }

  private:
    // Where the cells of a line go.
    struct Cell {
        i32 column;
        u32 place;   // RowWriter::number_place of the column
    };
    using Order = std::vector<Cell>;

    Cell cell_of(i32 column) const {
        if (!wanted(column)) column = NO_COLUMN;
        if (column >= 0 && !plan_->columns[static_cast<u32>(column)].kind->reads_points()) return {column, NO_FLOAT};
        return {column, writer_.number_place(column)};
    }

    // The names in the first line, which most records have in common.
    bool pass_header() {
        const char *p = cursor_;
        const u64 size = known_.size();
        if (size && size <= static_cast<u64>(csv_.end() - p) && std::memcmp(p, known_.data(), size) == 0 &&
            csv_.stop()(p[size]) && p[size] != delimiter_) {
            cursor_ = csv_.behind_breaks(p + size);
            return true;
        }
        known_.clear();
        named_.clear();
        for (;; ++p) {
            std::string_view name;
            const char *bad;
            p = csv_.cell(p, name, bad);
            if (!p) return false;
            named_.push_back(cell_of(bad ? NO_COLUMN : plan_->names.find(name)));
            if (*p != delimiter_) break;
        }
        known_.assign(cursor_, p);
        cursor_ = csv_.behind_breaks(p);
        return true;
    }

    // What ends the line at p; nullptr where it does not end.
    const char *read_line(const char *p) {
        const Order &order = has_header_ ? named_ : !brief_.empty() && count(p) == brief_.size() ? brief_ : full_;
        const Cell *cell = order.data(), *const end = cell + order.size();
        u64 more = 0;
        for (;; ++p) {
            const Cell at = cell == end ? Cell{NO_COLUMN, NO_FLOAT} : *cell;
            if (cell == end) ++more;
            else ++cell;
            f64 value;
            const char *behind = nullptr;
            if (at.place != NO_FLOAT) behind = parse_at_a_glance(p, value, csv_.stop());
            if (behind) [[likely]] writer_.put_number(static_cast<u32>(at.column), at.place, value);
            else behind = read_cell(p, at.column);
            if (!behind) return nullptr;
            p = behind;
            if (*p != delimiter_) break;
        }
        if (cell != end || more) wrong_count(order.size(), static_cast<u64>(cell - order.data()) + more);
        return p;
    }

    const char *read_cell(const char *p, i32 column) {
        std::string_view text;
        const char *bad;
        p = csv_.cell(p, text, bad);
        if (!p || column == NO_COLUMN) return p;
        if (bad) writer_.wrong(static_cast<u32>(column), bad);
        else writer_.written(static_cast<u32>(column), text);
        return p;
    }

    // Cells of the line at p, of requests: which of the two orders it is shows in the count alone.
    u64 count(const char *p) {
        for (u64 cells = 1;; ++cells, ++p) {
            std::string_view text;
            const char *bad;
            p = csv_.cell(p, text, bad);
            if (!p || *p != delimiter_) return cells;
        }
    }

    void wrong_count(u64 expected, u64 got) {
        const bool either = !has_header_ && !brief_.empty();
        writer_.fail_whole("expected " + std::to_string(either ? full_.size() : expected) + " cells" +
                           (either ? " (or " + std::to_string(brief_.size()) + " without label and weight)" : "") +
                           ", got " + std::to_string(got));
    }

    CsvText csv_;
    const bool has_header_;
    const char delimiter_;
    Order full_, brief_, named_;
    std::string known_;   // the first line that named_ is of
    const char *cursor_ = nullptr;
};

inline std::unique_ptr<Decoder> csv(std::shared_ptr<const DecodePlan> plan, const Options &options) {
    return std::make_unique<CsvDecoder>(std::move(plan), options);
}

}  // namespace st::formats
