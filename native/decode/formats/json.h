// JSON records: one pass over a padded scratch copy, keys compared as whole tokens learnt from the record before.
// An object is a row; an array of objects or arrays is many, and so are rows on lines of their own; a flat array is a
// row in column order; an object of arrays is columns, which stand at their names. A registry's frame may name a
// schema, which is asked for and not needed.
#pragma once
#include "decode/json_list.h"
#include "decode/key_table.h"
#include "decode/named_frame.h"
#include "decode/number_glance.h"
#include "decode/shaped_decoder.h"

namespace st::formats {

class JsonDecoder final : public ShapedDecoder {
  public:
    JsonDecoder(std::shared_ptr<const DecodePlan> plan, const Options &options) : ShapedDecoder(plan), frame_(options) {
        for (u32 node = 0; node < plan->tree.size(); ++node) orders_.emplace_back(plan->tree.node(node).entries.size());
    }

    bool waits() const override { return frame_.waits(); }

  protected:
    void open(const char *bytes, u64 size) override {
        shape_ = Shape::one;
        if (frame_) {
            const char *const datum = open_frame();
            if (!datum) return;
            size = static_cast<u64>(bytes + size - datum), bytes = datum;
        } else if (is_refused(bytes, size)) {
            return;
        }
        json_.load(bytes, size);
        cursor_ = JsonText::space(json_.begin() + (size >= 3 && std::memcmp(bytes, BYTE_ORDER_MARK, 3) == 0 ? 3 : 0));
        if (*cursor_ == '{') return;
        if (*cursor_ != '[') return refuse_broken(json_.broken(cursor_, "an object or an array"));
        const char *first = JsonText::space(cursor_ + 1);
        if (*first != '[' && *first != '{' && *first != ']') return;
        shape_ = Shape::many;
        if (*first == ']') return close(first + 1);   // no row
        cursor_ = first;
    }

    void step(RowSink &sink, RowTally &tally) override {
        start_row(sink);
        if (shape_ == Shape::columns) return step_columns(sink, tally);
        const char *p = read_row(cursor_);
        if (shape_ == Shape::columns) return open_columns();
        if (!p) return refuse_broken(p);
        const char *const behind = p;
        p = JsonText::space(p);
        if (shape_ == Shape::one && p != json_.end()) {
            if (!is_line(behind, p)) return refuse_broken(json_.broken(p, "the record's end"));
            shape_ = Shape::lines;
        }
        end_row(sink, tally);
        if (p == json_.end() && shape_ != Shape::many) end_record();
        else if (shape_ == Shape::lines) open_line(behind, p);
        else if (*p == ',') cursor_ = JsonText::space(p + 1);
        else if (*p == ']') close(p + 1);
        else refuse_broken(json_.broken(p, "',' or ']'"));
    }

    void list_names(NameList &names) override { if (shape_ != Shape::columns) json_.add_names(cursor_, names); }

  private:
    [[gnu::noinline]] const char *open_frame() {
        schema_.name = {};
        std::string reason;
        const char *const datum = frame_.open(at_hand(), schema_, reason);
        if (!datum) refuse("$", std::move(reason));
        return datum;
    }

    void refuse_broken(const char *) { refuse(path(NO_COLUMN, row_), json_.problem()); }

    // Whether a row begins at p, on another line than the one that ends at `behind`.
    static bool is_line(const char *behind, const char *p) {
        return std::memchr(behind, '\n', static_cast<u64>(p - behind)) && (*p == '{' || *p == '[');
    }

    void open_line(const char *behind, const char *p) {
        if (!is_line(behind, p)) return refuse_broken(json_.broken(p, "a row on a line of its own"));
        cursor_ = p;
    }

    // Behind the bracket that ends the rows.
    void close(const char *p) {
        p = JsonText::space(p);
        if (p == json_.end()) return end_record();
        refuse_broken(json_.broken(p, "the record's end"));
    }

    const char *read_row(const char *p) {
        if (*p == '{') return read_object(p, 0);
        if (*p == '[') return read_array(p);
        const char *bad = nullptr, *const start = p;
        p = json_.skip(p, bad);
        if (p) writer_.fail(NO_COLUMN, "expected a row (an object or an array), got " + shown({start, u64(p - start)}));
        return p;
    }

    // The object at p, a node of the tree: each has the order of its keys learnt by itself.
    const char *read_object(const char *p, u32 node) {
        KeyOrder &order = orders_[node];
        KeyToken *token = order.start();
        const char *const start = p;
        bool first_known = shape_ == Shape::one && node == 0;
        for (;;) {
            i32 column;
            u32 place;
            if (token->matches(p)) [[likely]] {
                p += token->size;
                column = token->column;
                place = (token++)->place;
            } else {
                p = read_key(p, p == start, node, token, column);
                if (column == ROOT) {
                    order.finish(token);
                    return p;
                }
                place = writer_.number_place(column);
            }
            if (place != NO_FLOAT) [[likely]] {
                if (const char *behind = read_number(p, static_cast<u32>(column), place)) [[likely]] {
                    p = behind;
                    continue;
                }
            }
            p = JsonText::space(p);
            if (column == NO_COLUMN) {
                p = skip_value(p);
            } else {
                if (first_known && !writer_.has_any()) {
                    const Sign sign = sign_of(column);
                    if (sign == Sign::by_array && *p == '[') return shape_ = Shape::columns, p;
                    first_known = sign == Sign::none;
                }
                p = read_value(p, column);
            }
            if (!p) return nullptr;
        }
    }

    // The usual cell: a number of a column of plain floats, p where it may begin. Else nullptr.
    [[gnu::always_inline]] const char *read_number(const char *p, u32 column, u32 place) {
        f64 value;
        if (const char *behind = parse_at_a_glance(p, value)) [[likely]] {
            writer_.put_number(column, place, value);
            return behind;
        }
        NumberText number;
        if (*p != '-' && !number_text::is_digit(*p)) return nullptr;
        const char *behind = parse_number(p, number);
        if (behind) writer_.number(column, number.value);
        return behind;
    }

    const char *read_value(const char *p, i32 target) {
        return target >= 0 ? read_cell(p, static_cast<u32>(target)) : read_node(p, node_of(target));
    }

    // What columns lie below: an object, or an array where their paths say so. In whatever else stands there they are
    // missing, and so is all that an earlier value of the same key has given.
    [[gnu::noinline]] const char *read_node(const char *p, u32 node) {
        const KeyTree::Node &of = plan_->tree.node(node);
        writer_.missing(of.columns);
        if (*p != (of.is_array ? '[' : '{')) return skip_value(p);
        ++depth_;
        p = of.is_array ? read_elements(p, of) : read_object(p, node);
        --depth_;
        return p;
    }

    const char *read_elements(const char *p, const KeyTree::Node &of) {
        auto next = of.entries.begin();
        p = JsonText::space(p + 1);
        if (*p == ']') return p + 1;
        for (i64 index = 0;; ++index) {
            if (next != of.entries.end() && next->step.index == index) p = read_element(p, (next++)->target);
            else p = skip_value(p);
            if (!p) return nullptr;
            p = JsonText::space(p);
            if (*p == ']') return p + 1;
            if (*p != ',') return json_.broken(p, "',' or ']'");
            p = JsonText::space(p + 1);
        }
    }

    const char *read_element(const char *p, i32 target) {
        const u32 place = writer_.number_place(target);
        const char *behind = place == NO_FLOAT ? nullptr : read_number(p, static_cast<u32>(target), place);
        return behind ? behind : read_value(p, target);
    }

    // From behind a value (or the '{') to the next one, with what its key leads to; or to the object's end, which is
    // told as ROOT.
    const char *read_key(const char *const from, bool first, u32 node, KeyToken *&token, i32 &column) {
        if (const KeyToken *known = KeyOrder::skip_one(token, from)) {
            column = known->column;
            return from + known->size;
        }
        const KeyTable &keys = plan_->tree.node(node).keys;
        column = ROOT;
        const char *p = first ? from : JsonText::space(from);
        if (!first && *p == '}') return p + 1;
        if (!first && *p != ',') return json_.broken(p, "',' or '}'");
        p = JsonText::space(p + 1);
        if (first && *p == '}') return p + 1;
        if (*p != '"') return json_.broken(p, "a key");
        const u64 word = load64(p + 1), quote = JsonText::zero_bytes(word ^ 0x2222222222222222u);
        const u64 bits = quote ? static_cast<u64>(__builtin_ctzll(quote)) & ~u64{7} : 0;
        const u64 key = word & ((u64{1} << bits) - 1);
        const char *bad = nullptr;
        i32 found;
        if (quote && !JsonText::is_special(key, bits)) {
            found = keys.find_short(key, bits >> 3);
            p += 2 + (bits >> 3);
        } else {
            std::string_view text;
            p = json_.string(p + 1, text, bad);
            if (!p) return nullptr;
            found = bad ? NO_COLUMN : keys.find(text);
        }
        p = JsonText::space(p);
        if (*p != ':') return json_.broken(p, "':'");
        p = JsonText::space(p + 1);
        column = found;
        if (bad) writer_.fail(NO_COLUMN, std::string("expected JSON text, got ") + bad);
        else orders_[node].learn(token, from, p - from, column, writer_.number_place(column));
        return p;
    }

    const char *skip_value(const char *p) {
        const char *bad = nullptr;
        p = json_.skip(p, bad, depth_);
        if (bad && p) writer_.fail(NO_COLUMN, std::string("expected JSON text, got ") + bad);
        return p;
    }

    const char *read_array(const char *p) {
        const std::vector<u32> &brief = plan_->short_columns;
        u64 count = 0;
        if (!brief.empty()) {   // requests: which of the two orders it is shows in the count alone
            const char *bad = nullptr;
            i64 cells = 0;
            if (!skip_elements(JsonText::space(p + 1), cells, bad)) return nullptr;
            count = static_cast<u64>(cells);
        }
        const bool is_brief = !brief.empty() && count == brief.size();
        const std::vector<u32> &order = is_brief ? brief : plan_->array_columns;
        const u64 expected = order.size();
        u64 cells = 0;
        p = JsonText::space(p + 1);
        if (*p == ']') ++p;
        else {
            for (;; ++cells) {
                const i32 column = cells >= expected ? NO_COLUMN : static_cast<i32>(order[cells]);
                p = wanted(column) ? read_cell(p, column) : skip_value(p);
                if (!p) return nullptr;
                p = JsonText::space(p);
                if (*p == ']') break;
                if (*p != ',') return json_.broken(p, "',' or ']'");
                p = JsonText::space(p + 1);
            }
            ++cells, ++p;
        }
        if (cells != expected) wrong_count(cells);
        return p;
    }

    const char *read_cell(const char *p, u32 column) {
        const char *const start = p;
        if (*p == '-' || number_text::is_digit(*p)) [[likely]] {
            NumberText number;
            p = parse_number(p, number);
            if (!p) return read_not_finite(start, column);
            if (!number.is_integer) writer_.number(column, number.value);
            else if (number.fits64) writer_.integer(column, number.magnitude, number.negative);
            else writer_.long_integer(column, number.value, {start, u64(p - start)});
            return p;
        }
        if (*p == '"') {
            std::string_view text;
            const char *bad;
            p = json_.string(p + 1, text, bad);
            if (p && bad) writer_.wrong(column, bad);
            else if (p) writer_.text(column, text);
            return p;
        }
        if (*p == '[' || *p == '{') return read_list(p, column);
        if (const char *behind = JsonText::literal(p, "null")) return writer_.missing(column), behind;
        if (const char *behind = JsonText::literal(p, "true")) return writer_.boolean(column, true), behind;
        if (const char *behind = JsonText::literal(p, "false")) return writer_.boolean(column, false), behind;
        return read_not_finite(p, column);
    }

    // A cell that is an array or an object.
    [[gnu::noinline]] const char *read_list(const char *const start, u32 column) {
        const auto cell = [this, column](const char *p) { return read_cell(p, column); };
        if (takes_json_list(writer_, column, *start))
            return read_json_list(json_, writer_, start, column, depth_, cell);
        const char *bad = nullptr;
        const char *p = json_.skip(start, bad, depth_);
        if (p) writer_.wrong(column, *start == '[' ? "an array" : "an object");
        return p;
    }

    const char *read_not_finite(const char *const start, u32 column) {
        const char *p = json_.skip_scalar(start);
        if (p && *start == 'N') writer_.missing(column, "NaN");
        else if (p) writer_.wrong(column, {start, u64(p - start)});
        return p;
    }

    // Passes the elements of an array, p behind its '['; returns what follows its ']'.
    const char *skip_elements(const char *p, i64 &count, const char *&bad) {
        p = JsonText::space(p);
        count = 0;
        if (*p == ']') return p + 1;
        for (;;) {
            p = json_.skip(p, bad);
            if (!p) return nullptr;
            ++count;
            p = JsonText::space(p);
            if (*p == ']') return p + 1;
            if (*p != ',') return json_.broken(p, "',' or ']'");
            p = JsonText::space(p + 1);
        }
    }

    // An object of arrays: one pass to check it and find each column's first cell, so that rows can then be read
    // across.
    void open_columns() {
        const char *bad = nullptr;
        found_.assign(plan_->columns.size(), {});
        const char *p = find_columns(cursor_, bad);
        if (!p) return refuse_broken(p);
        if (is_line(p, JsonText::space(p))) {   // rows after all, of which the first has an array for a cell
            shape_ = Shape::lines;
            return;
        }
        if (bad) return refuse("$", std::string("expected JSON text, got ") + bad);
        if (JsonText::space(p) != json_.end()) return close(p);
        if (columns_agree() && (columns_.empty() || columns_[0].rows == 0)) end_record();
    }

    const char *find_columns(const char *p, const char *&bad) {
        for (p = JsonText::space(p + 1);; p = JsonText::space(p + 1)) {
            if (*p != '"') return json_.broken(p, "a key");
            std::string_view key;
            const char *bad_key;
            p = json_.string(p + 1, key, bad_key);
            if (!p) return nullptr;
            if (bad_key) bad = bad_key;
            const i32 column = bad_key ? NO_COLUMN : plan_->names.find(key);
            p = JsonText::space(p);
            if (*p != ':') return json_.broken(p, "':'");
            p = JsonText::space(p + 1);
            p = wanted(column) ? find_column(p, static_cast<u32>(column)) : json_.skip(p, bad);
            if (!p) return nullptr;
            p = JsonText::space(p);
            if (*p == '}') return p + 1;
            if (*p != ',') return json_.broken(p, "',' or '}'");
        }
    }

    // A column given twice: the last one counts. null: the column is absent.
    const char *find_column(const char *p, u32 column) {
        found_[column] = {};
        if (const char *behind = JsonText::literal(p, "null")) return behind;
        const char *bad_cell = nullptr;   // seen again when its row is read
        ColumnCursor cursor{column, JsonText::space(p + 1), -1};
        p = *p == '[' ? skip_elements(p + 1, cursor.rows, bad_cell) : json_.skip(p, bad_cell);
        found_[column] = cursor;
        return p;
    }

    void step_columns(RowSink &sink, RowTally &tally) {
        for (ColumnCursor &cursor : columns_) {
            const char *p = JsonText::space(read_cell(cursor.at, cursor.column));
            cursor.at = JsonText::space(p + 1);   // behind ',' or the last ']'
        }
        end_row(sink, tally);
        if (row_ == columns_[0].rows) end_record();
    }

    NamedFrame frame_;
    JsonText json_;
    std::vector<KeyOrder> orders_;   // by the tree's nodes
    u32 depth_ = 0;                  // how many of them are open around the value at hand
    const char *cursor_ = nullptr;
};

inline std::unique_ptr<Decoder> json(std::shared_ptr<const DecodePlan> plan, const Options &options) {
    return std::make_unique<JsonDecoder>(std::move(plan), options);
}

}  // namespace st::formats
