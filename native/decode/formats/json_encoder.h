// JSON of a table: an object, or an object of arrays. Numbers have the fewest digits that read back as the same double.
#pragma once
#include <cstring>

#include "decode/record_encoder.h"

namespace st::formats {

class JsonEncoder final : public RecordEncoder {
  public:
    void encode(const RowTable &table, const PickedRows &rows, std::string &out) override {
        out.clear();
        out += '{';
        Cells to{out};
        for (u32 c = 0; c < table.columns.size(); ++c) {
            if (!table.columns[c].given) continue;
            if (out.size() > 1) out += ',';
            append_text(out, table.columns[c].plan.name);
            out += ':';
            if (rows.count == 1) {
                table.read(c, rows[0], to);
                continue;
            }
            out += '[';
            for (u64 i = 0; i < rows.count; ++i) {
                if (i) out += ',';
                table.read(c, rows[i], to);
            }
            out += ']';
        }
        out += '}';
    }

  private:
    struct Cells {
        std::string &out;

        void missing() { out += "null"; }
        void boolean(bool value) { out += value ? "true" : "false"; }
        void integer(u64 magnitude, bool negative) {
            char buffer[24];
            out += integer_text(magnitude, negative, buffer);
        }
        void long_integer(f64, std::string_view digits) { out += digits; }
        void text(std::string_view text) { append_text(out, text); }
        void number(f64 value) {
            char buffer[32];
            char *end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
            const std::string_view digits(buffer, static_cast<u64>(end - buffer));
            out += digits;
            if (digits.find_first_of(".en") == digits.npos) out += ".0";   // stays a number with a fraction
        }
    };

    // `text` is valid UTF-8.
    static void append_text(std::string &out, std::string_view text) {
        static constexpr char HEX[] = "0123456789abcdef";
        out += '"';
        for (char c : text) {
            if (c == '"' || c == '\\') out += '\\', out += c;
            else if (static_cast<u8>(c) < 0x20) out += "\\u00", out += HEX[c >> 4], out += HEX[c & 15];
            else out += c;
        }
        out += '"';
    }
};

inline std::unique_ptr<RecordEncoder> json_encoder() { return std::make_unique<JsonEncoder>(); }

}  // namespace st::formats
