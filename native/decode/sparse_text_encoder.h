// Lines of text that hold a label, perhaps a weight, and features by index: what the encoders of such formats share.
#pragma once
#include "decode/record_encoder.h"

namespace st {

class SparseTextEncoder : public RecordEncoder {
  public:
    bool keeps_others() const final { return false; }

    void encode(const RowTable &table, const PickedRows &rows, std::string &out) final {
        i32 label = NO_COLUMN, weight = NO_COLUMN, features = NO_COLUMN;
        for (u32 c = 0; c < table.columns.size(); ++c) {
            const PlanColumn &plan = table.columns[c].plan;
            const std::string block = plan.blocks.empty() ? "" : plan.blocks[0];
            if (block == "label") label = static_cast<i32>(c);
            else if (block == "weight") weight = static_cast<i32>(c);
            else if (plan.kind && plan.kind->form() == CellForm::pairs && features == NO_COLUMN)
                features = static_cast<i32>(c);
        }
        out.clear();
        for (u64 i = 0; i < rows.count; ++i) {
            const std::string told = word(table, label, rows[i]);
            write_head(told, word(table, weight, rows[i]), out);
            Pairs to{{out, table, features, rows[i]}};
            if (features != NO_COLUMN) table.read(static_cast<u32>(features), rows[i], to);
            out += '\n';
        }
    }

  protected:
    virtual void write_head(const std::string &label, const std::string &weight, std::string &out) const = 0;

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
        void list(const RowTable &of, const Cell &cell) {
            Pair pair{{*this}};
            of.each_element(cell, pair, [](u32) {});
        }
        void boolean(bool) { wrong("a boolean"); }
        void integer(u64, bool) { wrong("an integer"); }
        void number(f64 value) { wrong(shown_number(value)); }
        void text(std::string_view text) { wrong(quoted(text)); }
    };
    struct Pair : Word {
        void list(const RowTable &of, const Cell &cell) {
            if (cell.size != 2) wrong("a list of " + std::to_string(cell.size));
            of.each_element(cell, static_cast<Word &>(*this), [this](u32 i) { out += i ? ':' : ' '; });
        }
        void boolean(bool) { wrong("a boolean"); }
        void integer(u64, bool) { wrong("an integer"); }
        void number(f64 value) { wrong(shown_number(value)); }
        void text(std::string_view text) { wrong(quoted(text)); }
    };

    static std::string word(const RowTable &table, i32 column, u64 row) {
        std::string out;
        Word to{out, table, column, row};
        if (column != NO_COLUMN) table.read(static_cast<u32>(column), row, to);
        return out;
    }
};

}  // namespace st
