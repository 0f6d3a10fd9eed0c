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

f64 shortest(f32 value) {
    char text[32];
    const char *end = std::to_chars(text, text + sizeof text, value).ptr;
    f64 wide = 0;
    std::from_chars(text, end, wide);
    return wide;
}

std::vector<std::string> output_names(u32 width, const std::vector<std::string> &classes) {
    std::vector<std::string> names;
    for (u32 i = 0; width > 1 && i < width; ++i)
        names.push_back(i < classes.size() ? classes[i] : std::to_string(i));
    return names;
}

bool is_finite(const f32 *row, u32 width) {
    return std::all_of(row, row + width, [](f32 x) { return std::isfinite(x); });
}

AnswerWriter::AnswerWriter(u32 width, const std::vector<std::string> &classes)
    : width_(width), begin_('{' + json_quoted(prediction_key) + ':'),
      probabilities_(',' + json_quoted(probabilities_key) + ":{") {
    for (const std::string &name : output_names(width, classes)) names_.push_back(json_quoted(name));
    for (const std::string &name : names_) output_bytes_ = std::max<u64>(output_bytes_, name.size() + 16);
}

bool AnswerWriter::append(std::string &out, const f32 *row) const {
    if (!is_finite(row, width_)) return false;
    out += begin_;
    if (width_ == 1) {
        append_number(out, row[0]);
    } else {
        out += names_[likeliest(row, width_)];
        out += probabilities_;
        for (u32 i = 0; i < width_; ++i) {
            if (i) out += ',';
            out += names_[i];
            out += ':';
            append_number(out, row[i]);
        }
        out += '}';
    }
    out += '}';
    return true;
}

}   // namespace st
