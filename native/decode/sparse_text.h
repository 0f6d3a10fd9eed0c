// Lines of text that hold a label, perhaps a weight, and features by index: what such formats share.
#pragma once
#include <string>

#include "decode/decimal_text.h"
#include "decode/number_text.h"
#include "decode/padded_copy.h"
#include "decode/record_decoder.h"

namespace st {

// Of the column that a line's tag is.
inline bool is_tag(const Path &path) { return path.size() == 1 && path[0].key == "tag"; }

class SparseTextDecoder : public RecordDecoder {
  public:
    // Label and weight are the columns of those blocks, features the first column of pairs, the tag what stands there.
    explicit SparseTextDecoder(std::shared_ptr<const DecodePlan> plan) : RecordDecoder(plan) {
        for (u32 c = 0; c < plan_->columns.size(); ++c) {
            const PlanColumn &column = plan_->columns[c];
            if (!wanted(static_cast<i32>(c))) continue;
            const std::string block = column.blocks.empty() ? "" : column.blocks[0];
            if (block == "label") label_ = static_cast<i32>(c);
            else if (block == "weight") weight_ = static_cast<i32>(c);
            else if (column.kind->form() == CellForm::pairs && features_ == NO_COLUMN) features_ = static_cast<i32>(c);
            else if (is_tag(column.path)) tag_ = static_cast<i32>(c);
        }
    }

    bool many() const override { return row_ != 1; }

  protected:
    std::string cell_path(i32 column, i64 row) const override {
        const std::string at = "$[" + std::to_string(row) + "]";
        return column == NO_COLUMN ? at : at + plan_->columns[static_cast<u32>(column)].place;
    }

    void open(const char *bytes, u64 size) override {
        if (is_refused(bytes, size)) return;
        copy_.load(bytes, size, '\n');
        cursor_ = behind_breaks(copy_.begin());
        if (cursor_ == copy_.end()) end_record();
    }

    void step(RowSink &sink, RowTally &tally) override {
        start_row(sink);
        const u64 left = static_cast<u64>(copy_.end() + 1 - cursor_);   // with a break behind the record
        const char *const end = static_cast<const char *>(std::memchr(cursor_, '\n', left));
        const char *const line_end = end > cursor_ && end[-1] == '\r' ? end - 1 : end;
        read_line(cursor_, line_end);
        end_row(sink, tally);
        cursor_ = behind_breaks(end);
        if (cursor_ == copy_.end()) end_record();
    }

    // The line from p up to `end`, where a break stands.
    virtual void read_line(const char *p, const char *end) = 0;

    static bool is_space(char c) { return c == ' ' || c == '\t'; }
    static const char *behind_spaces(const char *p) {
        while (is_space(*p)) ++p;
        return p;
    }
    // Up to a space or the end.
    static const char *word_end(const char *p, const char *end) {
        while (p < end && !is_space(*p)) ++p;
        return p;
    }

    // A number of [p, end).
    static bool read_number(const char *p, const char *end, f64 &value) {
        if (*p == '-' || number_text::is_digit(*p)) {
            NumberText number;
            if (parse_number(p, number) == end) [[likely]] return value = number.value, true;
        }
        return *p != ' ' && parse_decimal({p, static_cast<u64>(end - p)}, value);
    }

    void put(i32 column, std::string_view word) {
        if (column == NO_COLUMN || word.empty()) return;
        if (is_utf8(word)) writer_.written(static_cast<u32>(column), word);
        else writer_.wrong(static_cast<u32>(column), "text that is not UTF-8");
    }

    void open_features() {
        if (features_ != NO_COLUMN) writer_.open_list(static_cast<u32>(features_));
    }
    [[gnu::always_inline]] void feature(u64 index, f64 value) {
        writer_.next_element();
        plan_->columns[features_].kind->pair(writer_, static_cast<u32>(features_), index, value);
    }
    void wrong_feature(const char *p, const char *end) {
        writer_.next_element();
        writer_.wrong(static_cast<u32>(features_), quoted({p, static_cast<u64>(end - p)}));
    }
    void close_features() {
        if (features_ != NO_COLUMN) writer_.close_list(static_cast<u32>(features_));
    }

    i32 label_ = NO_COLUMN, weight_ = NO_COLUMN, tag_ = NO_COLUMN, features_ = NO_COLUMN;

  private:
    const char *behind_breaks(const char *p) const {
        while (p < copy_.end() && (*p == '\n' || *p == '\r')) ++p;
        return p;
    }

    PaddedCopy copy_;
    const char *cursor_ = nullptr;
};

}  // namespace st
