// A short JSON text of the settings as values: what a format's option holds where that is a document. Not for records.
#pragma once
#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "decode/utf8.h"

namespace st {

struct JsonValue {
    enum Kind : u8 { null, boolean, number, text, array, object };
    Kind kind = null;
    bool flag = false;
    std::string letters;              // of text; of a number as it is written
    std::vector<JsonValue> items;     // of an array; of an object by key
    std::vector<std::string> keys;

    bool is_text(std::string_view other) const { return kind == text && letters == other; }
    const JsonValue *find(std::string_view key) const {
        for (u64 i = 0; i < keys.size(); ++i)
            if (keys[i] == key) return &items[i];
        return nullptr;
    }
    const JsonValue &at(std::string_view key) const {
        if (const JsonValue *found = find(key)) return *found;
        throw std::invalid_argument("expected " + std::string(key) + " in a JSON object, got none");
    }
    f64 as_number() const {
        f64 value = 0;
        const char *const end = letters.data() + letters.size();
        if (kind != number || std::from_chars(letters.data(), end, value).ptr != end)
            throw std::invalid_argument("expected a JSON number");
        return value;
    }
    i64 as_whole() const { return static_cast<i64>(whole<i64>()); }
    u64 as_size() const { return whole<u64>(); }

  private:
    template <class T>
    T whole() const {
        T value = 0;
        const char *const end = letters.data() + letters.size();
        if (kind != number || std::from_chars(letters.data(), end, value).ptr != end)
            throw std::invalid_argument("expected a whole JSON number, got " + letters);
        return value;
    }
};

class JsonDocument {
  public:
    // Throws std::invalid_argument for what is no JSON, and for what is nested too deep.
    static JsonValue read(std::string_view text) {
        JsonDocument document{text, 0, 0};
        JsonValue value = document.value();
        document.space();
        if (document.at_ != text.size()) document.wrong();
        return value;
    }

  private:
    static constexpr u32 DEEPEST = 256;

    JsonDocument(std::string_view text, u64 at, u32 depth) : text_(text), at_(at), depth_(depth) {}

    [[noreturn]] void wrong() const { throw std::invalid_argument("no JSON at byte " + std::to_string(at_)); }
    void space() {
        while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
    }
    char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    bool take(std::string_view token) {
        space();
        if (text_.substr(at_, token.size()) != token) return false;
        at_ += token.size();
        return true;
    }

    JsonValue value() {
        JsonValue made;
        space();
        if (next() == '"') return made.kind = JsonValue::text, made.letters = string(), made;
        if (take("null")) return made;
        const bool yes = take("true");
        if (yes || take("false")) return made.kind = JsonValue::boolean, made.flag = yes, made;
        if (next() == '{' || next() == '[') return nested();
        const u64 from = at_;
        while (std::string_view("+-.0123456789eE").find(next()) != std::string_view::npos) ++at_;
        if (at_ == from) wrong();
        made.kind = JsonValue::number;
        made.letters = text_.substr(from, at_ - from);
        return made;
    }

    JsonValue nested() {
        if (++depth_ > DEEPEST) wrong();
        JsonValue made;
        made.kind = next() == '{' ? JsonValue::object : JsonValue::array;
        const std::string_view close = next() == '{' ? "}" : "]";
        ++at_;
        for (bool first = true; !take(close); first = false) {
            if (!first && !take(",")) wrong();
            space();
            if (made.kind == JsonValue::object) {
                if (next() != '"') wrong();
                made.keys.push_back(string());
                if (!take(":")) wrong();
            }
            made.items.push_back(value());
        }
        --depth_;
        return made;
    }

    std::string string() {
        std::string made;
        for (++at_; next() != '"'; ++at_) {
            if (at_ >= text_.size()) wrong();
            if (next() != '\\') {
                made += next();
                continue;
            }
            ++at_;
            static constexpr std::string_view LETTERS = "\"\\/bfnrt", MEANINGS = "\"\\/\b\f\n\r\t";
            const u64 known = LETTERS.find(next());
            if (at_ < text_.size() && known != std::string_view::npos) made += MEANINGS[known];
            else append_utf8(made, unit());
        }
        ++at_;
        return made;
    }

    // Behind the u of an escape; at its last digit then.
    u32 unit() {
        u32 point = 0;
        const char *const from = text_.data() + at_ + 1;
        if (next() != 'u' || text_.size() - at_ < 5 || std::from_chars(from, from + 4, point, 16).ptr != from + 4)
            wrong();
        at_ += 4;
        return point;
    }

    std::string_view text_;
    u64 at_;
    u32 depth_;
};

}  // namespace st
