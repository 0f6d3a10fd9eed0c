// msgpack records: a map is a row; an array of maps or arrays is many; a flat array is a row in column order; a map of
// arrays is columns, which stand at their names.
#pragma once
#include "decode/key_table.h"
#include "decode/msgpack_item.h"
#include "decode/shaped_decoder.h"
#include "decode/utf8.h"

namespace st::formats {

class MsgpackDecoder final : public ShapedDecoder {
  public:
    explicit MsgpackDecoder(std::shared_ptr<const DecodePlan> plan) : ShapedDecoder(plan) {
        for (u32 node = 0; node < plan->tree.size(); ++node) orders_.emplace_back(plan->tree.node(node).entries.size());
    }

  protected:
    void open(const char *bytes, u64 size) override {
        if (is_refused(bytes, size)) return;
        msgpack_.load(bytes, size);
        cursor_ = msgpack_.begin();
        shape_ = Shape::one;
        flat_cells_ = 0;
        Item top;
        const char *first = msgpack_.read(cursor_, top);
        if (!first) return refuse_broken();
        if (top.kind == Item::map) return;
        if (top.kind != Item::array) return refuse("$", std::string("expected a map or an array, got ") + top.name());
        const u8 tag = static_cast<u8>(*first);
        const bool nested = (tag >= 0x80 && tag < 0xa0) || (tag >= 0xdc && tag < 0xe0);
        if (!nested && top.count) {
            flat_cells_ = top.count;
            cursor_ = first;
            return;
        }
        shape_ = Shape::many;
        if (top.count == 0) return close(first);   // no row
        rows_ = top.count;
        cursor_ = first;
    }

    void step(RowSink &sink, RowTally &tally) override {
        start_row(sink);
        if (shape_ == Shape::columns) return step_columns(sink, tally);
        const char *p = flat_cells_ ? read_array(cursor_, flat_cells_) : read_row(cursor_);
        if (shape_ == Shape::columns) return open_columns();
        if (!p) return refuse_broken();
        if (shape_ == Shape::one && p != msgpack_.end()) return close(p);
        end_row(sink, tally);
        cursor_ = p;
        if (shape_ == Shape::one) end_record();
        else if (static_cast<u64>(row_) == rows_) close(p);
    }

    void list_names(NameList &names) override {
        MsgpackItem head, key;
        if (shape_ == Shape::columns || flat_cells_) return;
        const char *p = msgpack_.read(cursor_, head);
        for (u64 pairs = head.kind == MsgpackItem::map ? head.count : 0; pairs && p; --pairs) {
            const char *const behind = msgpack_.read(p, key);
            if (key.kind == MsgpackItem::text) names.add(key.view());
            p = key.kind == MsgpackItem::array || key.kind == MsgpackItem::map ? msgpack_.skip(p) : behind;
            p = msgpack_.skip(p);
        }
    }

  private:
    using Item = MsgpackItem;
    void refuse_broken() { refuse(path(NO_COLUMN, row_), msgpack_.problem()); }

    void close(const char *p) {
        if (p == msgpack_.end()) return end_record();
        msgpack_.broken(p, "expected the record's end, got " + std::to_string(msgpack_.end() - p) + " more bytes");
        refuse_broken();
    }

    const char *read_row(const char *p) {
        Item head;
        const char *const start = p;
        p = msgpack_.read(p, head);
        if (!p) return nullptr;
        if (head.kind == Item::map) return read_map(p, head.count, 0);
        if (head.kind == Item::array) return read_array(p, head.count);
        writer_.fail(NO_COLUMN, std::string("expected a row (a map or an array), got ") + head.name());
        return msgpack_.skip(start);
    }

    // The pairs of a map, a node of the tree: each has the order of its keys learnt by itself.
    const char *read_map(const char *p, u64 pairs, u32 node) {
        KeyOrder &order = orders_[node];
        KeyToken *token = order.start();
        bool first_known = shape_ == Shape::one && node == 0;
        for (; pairs; --pairs) {
            i32 column;
            u32 place;
            if (token->matches(p)) [[likely]] {
                p += token->size;
                column = token->column;
                place = (token++)->place;
            } else {
                p = read_key(p, node, token, column);
                if (!p) return nullptr;
                place = writer_.number_place(column);
            }
            if (read_float(p, column, place)) [[likely]] continue;
            if (column == NO_COLUMN) {
                p = msgpack_.skip(p);
            } else {
                if (first_known && !writer_.has_any()) {
                    const Sign sign = sign_of(column);
                    if (sign == Sign::by_array && is_array(*p)) return shape_ = Shape::columns, p;
                    first_known = sign == Sign::none;
                }
                p = read_value(p, column);
            }
            if (!p) return nullptr;
        }
        order.finish(token);
        return p;
    }

    const char *read_value(const char *p, i32 target) {
        return target >= 0 ? read_cell(p, static_cast<u32>(target)) : read_node(p, node_of(target));
    }

    // What columns lie below: a map, or an array where their paths say so. In whatever else stands there they are
    // missing, and so is all that an earlier value of the same key has given.
    [[gnu::noinline]] const char *read_node(const char *const start, u32 node) {
        const KeyTree::Node &of = plan_->tree.node(node);
        Item head;
        writer_.missing(of.columns);
        const char *p = msgpack_.read(start, head);
        if (!p) return nullptr;
        if (head.kind != (of.is_array ? Item::array : Item::map)) return msgpack_.skip(start);
        return of.is_array ? read_elements(p, head.count, of) : read_map(p, head.count, node);
    }

    const char *read_elements(const char *p, u64 count, const KeyTree::Node &of) {
        auto next = of.entries.begin();
        for (u64 index = 0, passed; index < count && p; index += passed) {
            passed = 1;
            if (next == of.entries.end() || static_cast<u64>(next->step.index) != index) {
                p = msgpack_.skip(p);
                continue;
            }
            const i32 target = next->target;
            if (const u64 run = target < 0 ? 0 : read_run(p, target, std::min<u64>(next->run, count - index)))
                passed = run;
            else if (!read_float(p, target, writer_.number_place(target)))
                p = read_value(p, target);
            next += static_cast<i64>(passed);
        }
        return p;
    }

    // The usual cell: a finite float of a number column. Else false, and nothing is passed.
    [[gnu::always_inline]] bool read_float(const char *&p, i32 column, u32 place) {
        const u8 tag = static_cast<u8>(*p);
        if (place == NO_FLOAT || (tag & 0xfe) != 0xca) return false;
        const u32 size = tag == 0xca ? 5 : 9;
        if (p + size > msgpack_.end()) return false;
        const u32 c = static_cast<u32>(column);
        if (!(tag == 0xca ? writer_.put_checked(c, place, std::bit_cast<f32>(load_big<u32>(p + 1)))
                          : writer_.put_checked(c, place, std::bit_cast<f64>(load_big<u64>(p + 1)))))
            return false;
        p += size;
        return true;
    }

    // The usual cells of an array: float32 for number columns that lie in a row. How many were passed.
    u64 read_run(const char *&p, i32 column, u64 cells) {
        constexpr u64 size = 5;   // a tag and four bytes
        const char *const first = p;
        const u64 most = std::min<u64>(cells, static_cast<u64>(msgpack_.end() - p) / size);
        const u64 run = writer_.put_run<f32>(column, most, [first](u64 i, f32 &value) {
            const char *const cell = first + i * size;
            value = std::bit_cast<f32>(load_big<u32>(cell + 1));
            return static_cast<u8>(*cell) == 0xca;
        });
        p += run * size;
        return run;
    }

    static bool is_array(char c) {
        const u8 tag = static_cast<u8>(c);
        return (tag & 0xf0) == 0x90 || tag == 0xdc || tag == 0xdd;
    }

    const char *read_key(const char *const start, u32 node, KeyToken *&token, i32 &column) {
        Item key;
        if (const KeyToken *known = KeyOrder::skip_one(token, start)) {
            column = known->column;
            return start + known->size;
        }
        const char *p = msgpack_.read(start, key);
        if (!p) return nullptr;
        if (key.kind == Item::array || key.kind == Item::map) p = msgpack_.skip(start);
        column = key.kind == Item::text ? plan_->tree.node(node).keys.find(key.view()) : NO_COLUMN;
        if (p && key.kind == Item::text)
            orders_[node].learn(token, start, p - start, column, writer_.number_place(column));
        return p;
    }

    const char *read_array(const char *p, u64 cells) {
        const std::vector<u32> &brief = plan_->short_columns;
        const std::vector<u32> &order = !brief.empty() && cells == brief.size() ? brief : plan_->array_columns;
        const u64 expected = order.size();
        for (u64 i = 0; i < cells && p; ++i) {
            const i32 column = i >= expected ? NO_COLUMN : static_cast<i32>(order[i]);
            if (const u64 run = read_run(p, column, cells - i)) {
                i += run - 1;
                continue;
            }
            if (read_float(p, column, writer_.number_place(column))) continue;
            p = wanted(column) ? read_cell(p, static_cast<u32>(column)) : msgpack_.skip(p);
        }
        if (p && cells != expected) wrong_count(cells);
        return p;
    }

    const char *read_cell(const char *p, u32 column) {
        Item item;
        const char *const start = p;
        if (static_cast<u8>(*p) == 0xca && msgpack_.end() - p >= 5) {   // a label or weight, in most rows
            writer_.number(column, std::bit_cast<f32>(load_big<u32>(p + 1)));
            return p + 5;
        }
        p = msgpack_.read(p, item);
        if (!p) return nullptr;
        switch (item.kind) {
            case Item::nil: writer_.missing(column); return p;
            case Item::boolean: writer_.boolean(column, item.negative); return p;
            case Item::integer: writer_.integer(column, item.count, item.negative); return p;
            case Item::real: writer_.number(column, item.number); return p;
            case Item::text:
                if (is_utf8(item.view())) writer_.text(column, item.view());
                else writer_.wrong(column, "text that is not UTF-8");
                return p;
            case Item::binary: writer_.bytes(column, item.view()); return p;
            default: return read_list(start, column);
        }
    }

    // A cell that is an array or a map: of a column that takes such, its elements.
    [[gnu::noinline]] const char *read_list(const char *const start, u32 column) {
        Item head;
        const char *p = msgpack_.read(start, head);
        if (!p) return nullptr;
        const CellForm form = writer_.form(column);
        const bool is_map = head.kind == Item::map;
        const bool is_list = is_map ? form == CellForm::pairs : head.kind == Item::array && form != CellForm::value;
        if (writer_.in_list() || !is_list) {
            writer_.wrong(column, head.name());
            return msgpack_.skip(start);
        }
        writer_.open_list(column);
        for (u64 i = 0; i < head.count && p; ++i) {
            writer_.next_element();
            if (is_map) p = read_pair(p, 2, column);
            else if (Item pair; form == CellForm::pairs && is_array(*p))
                p = (p = msgpack_.read(p, pair)) ? read_pair(p, pair.count, column) : nullptr;
            else p = read_cell(p, column);
        }
        if (p) writer_.close_list(column);
        return p;
    }

    const char *read_pair(const char *p, u64 parts, u32 column) {
        for (; parts && p; --parts) {
            writer_.next_part();
            p = read_cell(p, column);
        }
        if (p) writer_.end_pair(column);
        return p;
    }

    // A map of arrays: one pass to check it and find each column's first cell, so that rows can then be read across.
    void open_columns() {
        found_.assign(plan_->columns.size(), {});
        const char *p = find_columns(cursor_);
        if (!p) return refuse_broken();
        if (p != msgpack_.end()) return close(p);
        if (columns_agree() && (columns_.empty() || columns_[0].rows == 0)) end_record();
    }

    const char *find_columns(const char *p) {
        Item head, key, cells;
        p = msgpack_.read(p, head);
        for (u64 i = 0; i < head.count && p; ++i) {
            const char *const start = p;
            p = msgpack_.read(p, key);
            if (p && (key.kind == Item::array || key.kind == Item::map)) p = msgpack_.skip(start);
            if (!p) return nullptr;
            const i32 column = key.kind == Item::text ? plan_->names.find(key.view()) : NO_COLUMN;
            if (wanted(column)) {   // given twice: the last one counts; nil: absent
                const char *first = msgpack_.read(p, cells);
                if (!first) return nullptr;
                const bool is_cells = cells.kind == Item::array;
                found_[column] = {static_cast<u32>(column), cells.kind == Item::nil ? nullptr : first,
                                  is_cells ? static_cast<i64>(cells.count) : -1};
            }
            p = msgpack_.skip(p);
        }
        return p;
    }

    void step_columns(RowSink &sink, RowTally &tally) {
        for (ColumnCursor &cursor : columns_) cursor.at = read_cell(cursor.at, cursor.column);
        end_row(sink, tally);
        if (row_ == columns_[0].rows) end_record();
    }

    MsgpackText msgpack_;
    std::vector<KeyOrder> orders_;   // by the tree's nodes
    const char *cursor_ = nullptr;
    u64 rows_ = 0;
    u64 flat_cells_ = 0;   // of a record that is one array row; cursor_ is behind its head
};

inline std::unique_ptr<Decoder> msgpack(std::shared_ptr<const DecodePlan> plan) {
    return std::make_unique<MsgpackDecoder>(std::move(plan));
}

}  // namespace st::formats
