// A JSON array or object in one cell, element by element: of columns that take lists, pairs or maps.
#pragma once
#include "decode/json_text.h"
#include "decode/row_writer.h"

namespace st {

// Whether a column takes what `bracket` opens where a cell stands.
inline bool takes_json_list(const RowWriter &writer, u32 column, char bracket) {
    const CellForm form = writer.form(column);
    return !writer.in_list() && (form == CellForm::pairs || (form == CellForm::list && bracket == '['));
}

// What lies between the bracket at p and that which closes it, `read` one by one.
template <class Read>
const char *read_json_elements(JsonText &json, const char *p, char close, Read read) {
    p = JsonText::space(p + 1);
    if (*p == close) return p + 1;
    for (;;) {
        if (!(p = read(p))) return nullptr;
        p = JsonText::space(p);
        if (*p == close) return p + 1;
        if (*p != ',') return json.broken(p, close == '}' ? "',' or '}'" : "',' or ']'");
        p = JsonText::space(p + 1);
    }
}

// What follows the list at p, or nullptr. `cell(p)` reads a cell of the column; `depth`: arrays and objects around it.
template <class Cell>
const char *read_json_list(JsonText &json, RowWriter &writer, const char *p, u32 column, u32 &depth, Cell cell) {
    const bool is_map = *p == '{', pairs = writer.form(column) == CellForm::pairs;
    const auto pair = [&](const char *at) {
        ++depth;
        at = read_json_elements(json, at, ']', [&](const char *part) {
            writer.next_part();
            return cell(part);
        });
        --depth;
        if (at) writer.end_pair(column);
        return at;
    };
    const auto entry = [&](const char *at) -> const char * {
        std::string_view key;
        const char *bad;
        if (*at != '"') return json.broken(at, "a key");
        if (!(at = json.string(at + 1, key, bad))) return nullptr;
        writer.next_part();
        if (bad) writer.wrong(column, bad);
        else writer.text(column, key);
        at = JsonText::space(at);
        if (*at != ':') return json.broken(at, "':'");
        writer.next_part();
        if ((at = cell(JsonText::space(at + 1)))) writer.end_pair(column);
        return at;
    };
    writer.open_list(column);
    ++depth;
    p = read_json_elements(json, p, is_map ? '}' : ']', [&](const char *at) {
        writer.next_element();
        if (is_map) return entry(at);
        return pairs && *at == '[' ? pair(at) : cell(at);
    });
    --depth;
    if (p) writer.close_list(column);
    return p;
}

}  // namespace st
