// Rows on their way into a record: cells by column, read once, in no format yet. Filled by one thread, then read-only.
#pragma once
#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "decode/base64.h"
#include "decode/column_view.h"
#include "decode/decode_plan.h"

namespace st {

// hashed: a text that is there as its hash alone; a table of a program's rows has none.
enum class CellKind : u8 { missing, boolean, integer, long_integer, number, text, list, bytes, hashed };

struct Cell {
    CellKind kind = CellKind::missing;
    bool flag = false;     // a boolean's value; whether an integer is negative, a hash has 64 bits
    u32 size = 0;          // of text, bytes and a long integer's digits; elements of a list; a hash's seed
    union {
        f64 number;
        u64 magnitude;     // a hash too
        u64 letters_at;    // of text, bytes and digits; of a list, among the elements
    };
    Cell() : magnitude(0) {}
};
static_assert(sizeof(Cell) == 16);

// A cell cannot stand in its column in this format.
struct CellMistake {
    u32 column;
    u64 row;
    std::string expected, got;
    std::string field = {};   // of the record, where that is no column of the table
};

struct RowTable {
    struct Column {
        PlanColumn plan;
        bool named = true;             // by the job
        bool given = false;            // some row has it
        bool is_view = false;          // an array's cells, not those of the table
        ColumnView view;
    };

    // An array's cells but infinity, which no record holds.
    template <class To>
    struct Finite {
        const RowTable &table;
        u32 column;
        u64 row;
        To &to;

        void missing() { to.missing(); }
        void boolean(bool value) { to.boolean(value); }
        void integer(u64 magnitude, bool negative) { to.integer(magnitude, negative); }
        void number(f64 value) {
            if (!std::isinf(value)) [[likely]] return to.number(value);
            const Column &of = table.columns[column];
            if (of.named) throw CellMistake{column, row, of.plan.expected(), shown_number(value)};
            to.missing();
        }
    };

    std::vector<Column> columns;
    KeyTree tree;                      // where rows hold the job's columns
    std::vector<Cell> cells;           // [column][row]
    std::vector<Cell> elements;        // of all lists
    std::string letters;               // of all text
    u64 rows = 0;
    u64 naming = 0;                    // counted up where the columns' names change, for what encoders know of them

    // Whether a row holds what an entry of the tree leads to.
    bool holds(i32 target) const {
        if (target >= 0) return columns[static_cast<u32>(target)].given;
        const std::vector<u32> &below = tree.node(node_of(target)).columns;
        return std::ranges::any_of(below, [this](u32 column) { return columns[column].given; });
    }

    // Whether no given column would show that an object of arrays is columns: lists are cells too.
    bool has_lists_alone() const {
        bool any = false;
        for (const Column &column : columns) {
            if (!column.given || !column.named || !column.plan.kind) continue;
            if (column.plan.kind->form() == CellForm::value) return false;
            any = true;
        }
        return any;
    }

    Cell &cell(u32 column, u64 row) { return cells[column * rows + row]; }

    std::string_view text(const Cell &cell) const { return {letters.data() + cell.letters_at, cell.size}; }

    // Calls one of to.missing(), boolean(b), integer(magnitude, negative), long_integer(rounded, digits), number(f64),
    // text(UTF-8), bytes(raw), without that text(base64), and list(table, cell), which reads each_element(). Throws
    // CellMistake for a list where `to` has none.
    template <class To>
    void read(u32 column, u64 row, To &to) const {
        if (columns[column].is_view) {
            Finite<To> finite{*this, column, row, to};
            return columns[column].view.read(row, finite);
        }
        const Cell &cell = cells[column * rows + row];
        if (cell.kind == CellKind::list) {
            if constexpr (requires { to.list(*this, cell); }) return to.list(*this, cell);
            else throw CellMistake{column, row, std::string("cells that the format has, and no ") +
                                                    columns[column].plan.expected(), "a list"};
        }
        if constexpr (!requires { to.hashed(TextHash()); })
            if (cell.kind == CellKind::hashed)
                throw CellMistake{column, row, columns[column].plan.expected(), "the hash of a text"};
        read_cell(cell, to);
    }

    template <class To>
    void read_cell(const Cell &cell, To &to) const {
        switch (cell.kind) {
            case CellKind::missing: return to.missing();
            case CellKind::boolean: return to.boolean(cell.flag);
            case CellKind::integer: return to.integer(cell.magnitude, cell.flag);
            case CellKind::number: return to.number(cell.number);
            case CellKind::text: return to.text(text(cell));
            case CellKind::long_integer: {
                const std::string_view digits = text(cell);
                f64 rounded = 0;
                std::from_chars(digits.data(), digits.data() + digits.size(), rounded);
                return to.long_integer(rounded, digits);
            }
            case CellKind::bytes:
                if constexpr (requires { to.bytes(text(cell)); }) return to.bytes(text(cell));
                else return to.text(to_base64(text(cell)));
            case CellKind::list:
                if constexpr (requires { to.list(*this, cell); }) to.list(*this, cell);
                return;
            case CellKind::hashed:
                if constexpr (requires { to.hashed(TextHash()); })
                    to.hashed({cell.magnitude, {cell.flag ? 64u : 32u, cell.size}});
                else to.missing();
                return;
        }
    }

    template <class To, class Between>
    void each_element(const Cell &list, To &to, Between between) const {
        for (u32 i = 0; i < list.size; ++i) {
            between(i);
            read_cell(elements[list.letters_at + i], to);
        }
    }
};

// Rows of a table: `count` from `first` on, or those `chosen` lists.
struct PickedRows {
    u64 first = 0, count = 0;
    const u32 *chosen = nullptr;
    u64 operator[](u64 i) const { return chosen ? chosen[i] : first + i; }
};

}  // namespace st
