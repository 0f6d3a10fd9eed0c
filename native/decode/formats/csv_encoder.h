// CSV of a table: a line for each row, cells in column order; with a header the names in a first line. Numbers have the
// fewest digits that read back as the same double.
#pragma once
#include "decode/record_encoder.h"

namespace st::formats {

class CsvEncoder final : public RecordEncoder {
  public:
    explicit CsvEncoder(const Options &options)
        : delimiter_(options.get<std::string>("delimiter", ",").at(0)),
          quote_(options.get<std::string>("quote", "\"").at(0)), has_header_(options.get<bool>("header")) {}

    bool keeps_others() const override { return false; }

    void encode(const RowTable &table, const PickedRows &rows, std::string &out) override {
        out.clear();
        if (has_header_)
            write_line(table, out, [&](u32 c) { append_text(out, table.columns[c].plan.name); });
        for (u64 i = 0; i < rows.count; ++i)
            write_line(table, out, [&](u32 c) {
                Cells to{*this, out, table.columns[c].plan, c, rows[i]};
                table.read(c, rows[i], to);
            });
    }

  private:
    struct Cells {
        const CsvEncoder &self;
        std::string &out;
        const PlanColumn &plan;
        u32 column;
        u64 row;

        void missing() {}
        // A number where it becomes one, else a word.
        void boolean(bool value) {
            if (plan.kind && plan.kind->is_float()) out += value ? '1' : '0';
            else out += value ? "true" : "false";
        }
        void integer(u64 magnitude, bool negative) {
            char buffer[24];
            out += integer_text(magnitude, negative, buffer);
        }
        void long_integer(f64, std::string_view digits) { out += digits; }
        void number(f64 value) {
            if (plan.kind && plan.kind->is_text()) {
                if (!is_exact_whole(value)) throw CellMistake{column, row, plan.expected(), shown_number(value)};
                return integer(static_cast<u64>(std::abs(value)), value < 0);
            }
            char buffer[32];
            std::string digits(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
            if (value == 0 && std::signbit(value)) digits += ".0";   // -0 would be a whole number
            put_point(digits, plan.kind.get());
            self.append_text(out, digits);
        }
        void text(std::string_view text) { self.append_text(out, text); }
    };

    // The columns that are in the record.
    template <class Write>
    void write_line(const RowTable &table, std::string &out, Write write) const {
        const u64 start = out.size();
        bool first = true;
        for (u32 c = 0; c < table.columns.size(); ++c) {
            if (!table.columns[c].plan.from.empty()) continue;
            if (!first) out += delimiter_;
            first = false;
            write(c);
        }
        if (out.size() == start) out += quote_, out += quote_;   // a line that holds nothing is no row
        out += '\n';
    }

    // In quotes where it would not be read as it is, or be taken for the beginning of something else.
    void append_text(std::string &out, std::string_view text) const {
        const auto is_special = [this](char c) { return c == delimiter_ || c == quote_ || c == '\n' || c == '\r'; };
        const bool is_odd = !text.empty() && (text[0] == 0 || static_cast<u8>(text[0]) == 0xef);
        if (!is_odd && std::none_of(text.begin(), text.end(), is_special)) {
            out += text;
            return;
        }
        out += quote_;
        for (char c : text) out.append(1 + (c == quote_), c);
        out += quote_;
    }

    char delimiter_, quote_;
    bool has_header_;
};

inline std::unique_ptr<RecordEncoder> csv_encoder(const Options &options) {
    return std::make_unique<CsvEncoder>(options);
}

}  // namespace st::formats
