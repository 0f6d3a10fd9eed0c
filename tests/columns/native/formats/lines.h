// A format for tests, with options: a row a line, its cells in column order between separators, as text; what begins
// with `comment` is no row. Empty records and those that begin with 0 are its own.
#pragma once
#include "decode/number_text.h"
#include "decode/record_decoder.h"
#include "decode/utf8.h"

namespace st::formats {

class LinesDecoder final : public RecordDecoder {
  public:
    LinesDecoder(std::shared_ptr<const DecodePlan> plan, const Options &options)
        : RecordDecoder(std::move(plan)), separator_(options.get<std::string>("separator", ",")),
          comment_(options.get<std::string>("comment", "#")) {}

    bool many() const override { return true; }

  protected:
    std::string cell_path(i32 column, i64 row) const override {
        return "$[" + std::to_string(row) + "]" + (column == NO_COLUMN ? "" : "." + column_name(column));
    }
    void open(const char *bytes, u64 size) override { rest_ = {bytes, size}; }

    void step(RowSink &sink, RowTally &tally) override {
        if (rest_.empty()) return end_record();
        const u64 end = std::min(rest_.find('\n'), rest_.size());
        const std::string_view line = rest_.substr(0, end);
        rest_.remove_prefix(std::min(end + 1, rest_.size()));
        if (line.starts_with(comment_)) return;
        start_row(sink);
        read_cells(line);
        end_row(sink, tally);
    }

  private:
    void read_cells(std::string_view line) {
        u32 column = 0;
        for (bool more = true; more && column < plan_->columns.size(); ++column) {
            const u64 end = line.find(separator_);
            more = end != line.npos;
            cell(column, line.substr(0, end));
            if (more) line.remove_prefix(end + separator_.size());
        }
    }

    void cell(u32 column, std::string_view text) {
        f64 value;
        const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
        if (read.ec == std::errc() && read.ptr == text.data() + text.size()) writer_.number(column, value);
        else if (is_utf8(text)) writer_.text(column, text);
        else writer_.wrong(column, "text that is not UTF-8");
    }

    std::string separator_, comment_;
    std::string_view rest_;
};

inline std::unique_ptr<Decoder> lines(std::shared_ptr<const DecodePlan> plan, const Options &options) {
    return std::make_unique<LinesDecoder>(std::move(plan), options);
}

}  // namespace st::formats
