// Lines of text that hold a label, perhaps a weight, and features by index: what the encoders of such formats share.
#pragma once
#include <vector>

#include "decode/record_encoder.h"
#include "decode/sparse_text.h"

namespace st {

class SparseTextEncoder : public RecordEncoder {
  public:
    bool keeps_others() const final { return false; }

    void encode(const RowTable &table, const PickedRows &rows, std::string &out) final {
        i32 label = NO_COLUMN, weight = NO_COLUMN, tag = NO_COLUMN;
        std::vector<u32> wide;
        for (u32 c = 0; c < table.columns.size(); ++c) {
            const PlanColumn &plan = table.columns[c].plan;
            const std::string block = plan.blocks.empty() ? "" : plan.blocks[0];
            if (block == "label") label = static_cast<i32>(c);
            else if (block == "weight") weight = static_cast<i32>(c);
            else if (plan.kind && plan.kind->form() == CellForm::pairs) wide.push_back(c);
            else if (is_tag(plan.path)) tag = static_cast<i32>(c);
        }
        out.clear();
        for (u64 i = 0; i < rows.count; ++i) {
            const u64 start = out.size();
            write_head({word(table, label, rows[i]), word(table, weight, rows[i]), word(table, tag, rows[i])}, out);
            if (wide.empty()) write_namespace("", out);
            for (const u32 column : wide) {
                const auto *const names = table.columns[column].plan.kind->namespaces();
                const u64 shift = write_namespace(names ? names->front() : "", out);
                Pairs to{{out, table, static_cast<i32>(column), rows[i]}, shift};
                table.read(column, rows[i], to);
            }
            if (out.size() == start) out += ' ';   // a line that holds nothing is no row
            out += '\n';
        }
    }

  protected:
    struct Head {
        std::string label, weight, tag;
    };
    virtual void write_head(const Head &head, std::string &out) const = 0;
    // What stands before the features of a namespace; what is added to an index, so that it is that in it.
    virtual u64 write_namespace(const std::string & /*name*/, std::string &) const { return 0; }

  private:
    // A cell as a word.
    struct Word {
        std::string &out;
        const RowTable &table;
        i32 column;
        u64 row;

        void missing() {}
        void boolean(bool value) { out += value ? '1' : '0'; }
        void integer(u64 magnitude, bool negative) {
            char buffer[24];
            out += integer_text(magnitude, negative, buffer);
        }
        void long_integer(f64, std::string_view digits) { out += digits; }
        void number(f64 value) {
            char buffer[32];
            out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
        }
        void text(std::string_view text) {
            if (text.find_first_of(" \t\r\n|:#'") != text.npos) wrong(quoted(text));
            out += text;
        }
        [[noreturn]] void wrong(std::string got) const {
            const PlanColumn &plan = table.columns[static_cast<u32>(column)].plan;
            throw CellMistake{static_cast<u32>(column), row, plan.expected(), std::move(got)};
        }
    };

    // Pairs behind a space each.
    struct Pairs : Word {
        u64 shift;

        void list(const RowTable &of, const Cell &cell) {
            Pair pair{{*this}, shift};
            of.each_element(cell, pair, [](u32) {});
        }
        void boolean(bool) { wrong("a boolean"); }
        void integer(u64, bool) { wrong("an integer"); }
        void number(f64 value) { wrong(shown_number(value)); }
        void text(std::string_view text) { wrong(quoted(text)); }
    };
    // An index, or a value.
    struct Part : Word {
        u64 shift;
        bool is_index = false;

        void integer(u64 magnitude, bool negative) {
            const bool shifts = is_index && !negative && magnitude <= MOST_INDEX;
            Word::integer(magnitude + (shifts ? shift : 0), negative);
        }
        void text(std::string_view text) {
            u64 index = 0;
            const char *const end = text.data() + text.size();
            const auto [read, error] = std::from_chars(text.data(), end, index);
            const bool shifts = is_index && shift && read == end && error == std::errc() && index <= MOST_INDEX;
            if (shifts) integer(index, false);
            else Word::text(text);
        }
    };
    struct Pair : Word {
        u64 shift;

        void list(const RowTable &of, const Cell &cell) {
            if (cell.size != 2) wrong("a list of " + std::to_string(cell.size));
            Part part{{*this}, shift};
            of.each_element(cell, part, [this, &part](u32 i) { out += i ? ':' : ' ', part.is_index = i == 0; });
        }
        void boolean(bool) { wrong("a boolean"); }
        void integer(u64, bool) { wrong("an integer"); }
        void number(f64 value) { wrong(shown_number(value)); }
        void text(std::string_view text) { wrong(quoted(text)); }
    };
    static constexpr u64 MOST_INDEX = 0xffffffff;   // of a bucket, and more

    static std::string word(const RowTable &table, i32 column, u64 row) {
        std::string out;
        Word to{out, table, column, row};
        if (column != NO_COLUMN) table.read(static_cast<u32>(column), row, to);
        return out;
    }
};

}  // namespace st
