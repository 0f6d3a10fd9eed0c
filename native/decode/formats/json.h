// JSON records: one pass over a padded scratch copy, keys compared as whole tokens learnt from the record before.
// An object is a row; an array of objects or arrays is many; a flat array is a row in column order; an object of arrays
// is columns.
#pragma once
#include "decode/json_text.h"
#include "decode/key_table.h"
#include "decode/number_glance.h"
#include "decode/shaped_decoder.h"

namespace st::formats {

class JsonDecoder final : public ShapedDecoder {
  public:
    explicit JsonDecoder(std::shared_ptr<const DecodePlan> plan) : ShapedDecoder(plan), order_(plan->columns.size()) {}

  protected:
    void open(const char *bytes, u64 size) override {
        if (is_refused(bytes, size)) return;
        json_.load(bytes, size);
        cursor_ = JsonText::space(json_.begin());
        shape_ = Shape::one;
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
        p = JsonText::space(p);
        if (shape_ == Shape::one && p != json_.end()) return refuse_broken(json_.broken(p, "the record's end"));
        end_row(sink, tally);
        if (shape_ == Shape::one) end_record();
        else if (*p == ',') cursor_ = JsonText::space(p + 1);
        else if (*p == ']') close(p + 1);
        else refuse_broken(json_.broken(p, "',' or ']'"));
    }

  private:
    static constexpr i32 ROW_END = -2;   // beside the columns and NO_COLUMN

    void refuse_broken(const char *) { refuse(path(NO_COLUMN, row_), json_.problem()); }

    // Behind the bracket that ends the rows.
    void close(const char *p) {
        p = JsonText::space(p);
        if (p == json_.end()) return end_record();
        refuse_broken(json_.broken(p, "the record's end"));
    }

    const char *read_row(const char *p) {
        if (*p == '{') return read_object(p);
        if (*p == '[') return read_array(p);
        const char *bad = nullptr, *const start = p;
        p = json_.skip(p, bad);
        if (p) writer_.fail(NO_COLUMN, "expected a row (an object or an array), got " + shown({start, u64(p - start)}));
        return p;
    }

    const char *read_object(const char *p) {
        KeyToken *token = order_.start();
        const char *const start = p;
        bool first_wanted = shape_ == Shape::one;
        for (;;) {
            i32 column;
            u32 place;
            if (token->matches(p)) [[likely]] {
                p += token->size;
                column = token->column;
                place = (token++)->place;
            } else {
                p = read_key(p, p == start, token, column);
                if (column == ROW_END) {
                    order_.finish(token);
                    return p;
                }
                place = writer_.number_place(column);
            }
            if (place != NO_FLOAT) [[likely]] {
                f64 value;
                if (const char *behind = parse_at_a_glance(p, value)) [[likely]] {
                    writer_.put_number(static_cast<u32>(column), place, value);
                    p = behind;
                    continue;
                }
                NumberText number;
                if (*p == '-' || number_text::is_digit(*p)) {
                    if (const char *behind = parse_number(p, number)) {
                        writer_.number(static_cast<u32>(column), number.value);
                        p = behind;
                        continue;
                    }
                }
            }
            p = JsonText::space(p);
            if (column == NO_COLUMN) {
                p = skip_value(p);
            } else {
                if (*p == '[' && first_wanted && !writer_.has_any()) {
                    shape_ = Shape::columns;
                    return p;
                }
                first_wanted = false;
                p = read_cell(p, static_cast<u32>(column));
            }
            if (!p) return nullptr;
        }
    }

    // From behind a value (or the '{') to the next one, with its column; or the object's end, as column ROW_END.
    const char *read_key(const char *const from, bool first, KeyToken *&token, i32 &column) {
        if (const KeyToken *known = KeyOrder::skip_one(token, from)) {
            column = known->column;
            return from + known->size;
        }
        column = ROW_END;
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
            found = plan_->keys.find_short(key, bits >> 3);
            p += 2 + (bits >> 3);
        } else {
            std::string_view text;
            p = json_.string(p + 1, text, bad);
            if (!p) return nullptr;
            found = bad ? NO_COLUMN : plan_->keys.find(text);
        }
        p = JsonText::space(p);
        if (*p != ':') return json_.broken(p, "':'");
        p = JsonText::space(p + 1);
        column = wanted(found) ? found : NO_COLUMN;
        if (bad) writer_.fail(NO_COLUMN, std::string("expected JSON text, got ") + bad);
        else order_.learn(token, from, p - from, column, writer_.number_place(column));
        return p;
    }

    const char *skip_value(const char *p) {
        const char *bad = nullptr;
        p = json_.skip(p, bad);
        if (bad && p) writer_.fail(NO_COLUMN, std::string("expected JSON text, got ") + bad);
        return p;
    }

    const char *read_array(const char *p) {
        const std::vector<u32> &brief = plan_->short_columns;
        const u64 full = plan_->columns.size();
        u64 count = 0;
        if (!brief.empty()) {   // requests: which of the two orders it is shows in the count alone
            const char *bad = nullptr;
            i64 cells = 0;
            if (!skip_elements(JsonText::space(p + 1), cells, bad)) return nullptr;
            count = static_cast<u64>(cells);
        }
        const bool is_brief = !brief.empty() && count == brief.size();
        const u64 expected = is_brief ? brief.size() : full;
        u64 cells = 0;
        p = JsonText::space(p + 1);
        if (*p == ']') ++p;
        else {
            for (;; ++cells) {
                const i32 column = cells >= expected ? NO_COLUMN : static_cast<i32>(is_brief ? brief[cells] : cells);
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
        if (*p == '[' || *p == '{') {
            const char *bad = nullptr;
            p = json_.skip(p, bad);
            if (p) writer_.wrong(column, *start == '[' ? "an array" : "an object");
            return p;
        }
        if (const char *behind = JsonText::literal(p, "null")) return writer_.missing(column), behind;
        if (const char *behind = JsonText::literal(p, "true")) return writer_.boolean(column, true), behind;
        if (const char *behind = JsonText::literal(p, "false")) return writer_.boolean(column, false), behind;
        return read_not_finite(p, column);
    }

    const char *read_not_finite(const char *const start, u32 column) {
        const char *p = json_.skip_scalar(start);
        if (p) writer_.wrong(column, {start, u64(p - start)});
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
            const i32 column = bad_key ? NO_COLUMN : plan_->keys.find(key);
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

    JsonText json_;
    KeyOrder order_;
    const char *cursor_ = nullptr;
};

inline std::unique_ptr<Decoder> json(std::shared_ptr<const DecodePlan> plan) {
    return std::make_unique<JsonDecoder>(std::move(plan));
}

}  // namespace st::formats
