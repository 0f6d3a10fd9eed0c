#include "predict/answers.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace st {

std::string json_quoted(std::string_view text) {
    static constexpr char hex[] = "0123456789abcdef";
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\')
            out += '\\', out += c;
        else if (static_cast<u8>(c) < 0x20)
            out += "\\u00", out += hex[c >> 4], out += hex[c & 15];
        else
            out += c;
    }
    return out += '"';
}

void append_number(std::string &out, f32 value) {
    char text[32];
    char *end = std::to_chars(text, text + sizeof text, value).ptr;
    std::string_view digits(text, static_cast<std::size_t>(end - text));
    out += digits;
    if (digits.find_first_of(".e") == std::string_view::npos) out += ".0";
}

std::string error_text(std::string_view path, std::string_view reason, std::string_view where) {
    return "{\"error\":{\"path\":" + json_quoted(path) + ",\"reason\":" + json_quoted(reason) +
           ",\"where\":" + json_quoted(where) + "}}";
}

std::string answer_too_large(u64 most_bytes) {
    std::string most = std::to_string(most_bytes);
    for (std::size_t at = most.size(); at > 3;) most.insert(at -= 3, 1, ',');
    return "expected an answer of at most " + most + " bytes, got more; send fewer rows at once";
}

f64 shortest(f32 value) {
    char text[32];
    const char *end = std::to_chars(text, text + sizeof text, value).ptr;
    f64 wide = 0;
    std::from_chars(text, end, wide);
    return wide;
}

std::vector<std::string> AnswerHead::output_names() const {
    std::vector<std::string> names;
    for (u32 i = 0; width > 1 && i < width; ++i)
        names.push_back(i < classes.size() ? classes[i] : std::to_string(i));
    return names;
}

u32 width_of(const std::vector<AnswerHead> &heads) {
    u32 width = 0;
    for (const AnswerHead &head : heads) width += head.width;
    return width;
}

bool is_finite(const f32 *row, u32 width) {
    return std::all_of(row, row + width, [](f32 x) { return std::isfinite(x); });
}

AnswerWriter::AnswerWriter(const std::vector<AnswerHead> &heads)
    : width_(width_of(heads)), several_(!heads.front().name.empty()),
      begin_('{' + json_quoted(prediction_key) + ':'), probabilities_(',' + json_quoted(probabilities_key) + ':') {
    for (const AnswerHead &each : heads) {
        Head head{several_ ? json_quoted(each.name) + ':' : "", each.width, {}, {}};
        for (const std::string &name : each.output_names()) head.names.push_back(json_quoted(name));
        head.values = each.are_values ? each.output_names() : head.names;
        for (const std::string &name : head.names) output_bytes_ = std::max<u64>(output_bytes_, name.size() + 16);
        output_bytes_ = std::max<u64>(output_bytes_, head.key.size() + 32);
        heads_.push_back(std::move(head));
    }
}

bool AnswerWriter::append(std::string &out, const f32 *row) const {
    if (!is_finite(row, width_)) return false;
    out += begin_;
    if (!several_) {
        append_prediction(out, heads_[0], row);
        if (width_ > 1) out += probabilities_, append_probabilities(out, heads_[0], row);
        out += '}';
        return true;
    }
    out += '{';
    const f32 *at = row;
    for (const Head &head : heads_) {
        if (at != row) out += ',';
        append_prediction(out, head, at);
        at += head.width;
    }
    out += '}';
    bool any = false;
    at = row;
    for (const Head &head : heads_) {
        if (head.width > 1) {
            if (any) out += ',';
            else out += probabilities_, out += '{';
            append_probabilities(out, head, at);
            any = true;
        }
        at += head.width;
    }
    out += any ? "}}" : "}";
    return true;
}

void AnswerWriter::append_prediction(std::string &out, const Head &head, const f32 *row) {
    out += head.key;
    if (head.width == 1) append_number(out, row[0]);
    else out += head.values[likeliest(row, head.width)];
}

void AnswerWriter::append_probabilities(std::string &out, const Head &head, const f32 *row) {
    out += head.key;
    out += '{';
    for (u32 i = 0; i < head.width; ++i) {
        if (i) out += ',';
        out += head.names[i];
        out += ':';
        append_number(out, row[i]);
    }
    out += '}';
}

}   // namespace st
