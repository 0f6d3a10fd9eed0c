// JSON of a table: an object, nested as the columns' paths say, or an object of arrays by name. Numbers have the fewest
// digits that read back as the same double.
#pragma once
#include <cstring>

#include "decode/record_encoder.h"

namespace st::formats {

class JsonEncoder final : public RecordEncoder {
  public:
    explicit JsonEncoder(const Options &options) : frame_(registry_frame(options)) {}

    void encode(const RowTable &table, const PickedRows &rows, std::string &out) override {
        out = frame_;
        Cells to{out};
        if (rows.count == 1 && table.tree.is_nested()) return append_node({table, rows[0], to}, 0);
        if (rows.count > 1 && table.has_lists_alone()) return append_rows(table, rows, to);
        out += '{';
        const u64 begin = out.size();
        for (u32 c = 0; c < table.columns.size(); ++c) {
            if (!table.columns[c].given) continue;
            if (out.size() > begin) out += ',';
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
        void list(const RowTable &table, const Cell &cell) {
            out += '[';
            table.each_element(cell, *this, [this](u32 i) { out += i ? "," : ""; });
            out += ']';
        }
        void number(f64 value) {
            char buffer[32];
            char *end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
            const std::string_view digits(buffer, static_cast<u64>(end - buffer));
            out += digits;
            if (digits.find_first_of(".en") == digits.npos) out += ".0";   // stays a number with a fraction
        }
    };

    // An object each.
    static void append_rows(const RowTable &table, const PickedRows &rows, Cells &to) {
        to.out += '[';
        for (u64 i = 0; i < rows.count; ++i) {
            to.out += i ? "," : "";
            append_node({table, rows[i], to}, 0);
        }
        to.out += ']';
    }

    // One row, and where its cells go.
    struct Row {
        const RowTable &table;
        u64 row;
        Cells &to;
    };

    static void append_node(const Row &row, u32 node) {
        const KeyTree::Node &of = row.table.tree.node(node);
        std::string &out = row.to.out;
        out += of.is_array ? '[' : '{';
        const u64 begin = out.size();
        const auto separate = [&] { out += out.size() == begin ? "" : ","; };
        i64 index = 0;
        for (const KeyTree::Entry &each : of.entries) {
            if (!row.table.holds(each.target)) continue;
            for (; of.is_array && index < each.step.index; ++index) separate(), row.to.missing();
            ++index;
            separate();
            if (!of.is_array) append_text(out, each.step.key), out += ':';
            if (each.target < 0) append_node(row, node_of(each.target));
            else row.table.read(static_cast<u32>(each.target), row.row, row.to);
        }
        if (node == 0) append_others(row, separate);
        out += of.is_array ? ']' : '}';
    }

    template <class Separate>
    static void append_others(const Row &row, Separate separate) {
        for (u32 c = 0; c < row.table.columns.size(); ++c) {
            if (row.table.columns[c].named || !row.table.columns[c].given) continue;
            separate();
            append_text(row.to.out, row.table.columns[c].plan.name);
            row.to.out += ':';
            row.table.read(c, row.row, row.to);
        }
    }

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

    const std::string frame_;
};

inline std::unique_ptr<RecordEncoder> json_encoder(const Options &options) {
    return std::make_unique<JsonEncoder>(options);
}

}  // namespace st::formats
