// JSON text (RFC 8259, plus the literals NaN, Infinity and -Infinity) below the level of rows: white space, strings,
// skipping. The text lies in a scratch copy padded with zeros, so that words may be loaded past its end and every loop
// stops there.
#pragma once
#include <cstring>
#include <string>
#include <string_view>

#include "decode/number_text.h"
#include "decode/padded_copy.h"
#include "decode/utf8.h"

namespace st {

class JsonText {
  public:
    static constexpr u32 DEEPEST = 256;   // open arrays and objects

    void load(const char *bytes, u64 size) {
        copy_.load(bytes, size);
        end_ = copy_.end();
        problem_.clear();
    }

    const char *begin() const { return copy_.begin(); }
    const char *end() const { return end_; }
    const std::string &problem() const { return problem_; }

    static const char *space(const char *p) {
        while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') ++p;
        return p;
    }

    // The text is not JSON at p: nullptr, and problem() says what was expected.
    const char *broken(const char *p, const char *expected) {
        const std::string at = " at byte " + std::to_string(p - begin());
        if (p >= end_) problem_ = std::string("expected ") + expected + ", got the record's end" + at;
        else problem_ = std::string("expected ") + expected + ", got " + character(*p) + at;
        return nullptr;
    }

    // p stands behind the opening quote; returns the first character behind the closing one. `bad` says why the text is
    // not usable (it ends where it should), else nullptr. The view holds until the next call.
    const char *string(const char *p, std::string_view &text, const char *&bad) {
        const char *const start = p;
        u32 flags = 0;
        p = string_end(p, flags);
        if (!p) return nullptr;
        text = {start, static_cast<u64>(p - start)};
        bad = nullptr;
        if (flags) [[unlikely]] {
            if (flags & CONTROL) bad = "a control character in text";
            else if ((flags & HIGH) && !is_utf8(text)) bad = "text that is not UTF-8";
            else if (flags & ESCAPE) bad = unescape(text);
        }
        return p + 1;
    }

    // The names of an object that was read without a mistake; of anything else none.
    template <class Names>
    void add_names(const char *object, Names &names) {
        std::string_view key;
        const char *bad = nullptr;
        if (*object != '{') return;
        for (const char *p = space(object + 1); p && *p == '"'; p = space(p + (*p == ','))) {
            p = string(p + 1, key, bad);
            names.add(key);
            p = space(skip(space(space(p) + 1), bad));
        }
    }

    // Passes one value of any kind, `depth` arrays and objects deep. `bad` is set if a string in it is not usable.
    const char *skip(const char *p, const char *&bad, u32 depth = 0) {
        if (*p == '"') {
            std::string_view text;
            const char *bad_text;
            p = string(p + 1, text, bad_text);
            if (bad_text && p) bad = bad_text;
            return p;
        }
        if (*p == '[' || *p == '{') return skip_nested(p, bad, depth);
        return skip_scalar(p);
    }

    const char *skip_scalar(const char *p) {
        if (*p == '-' || number_text::is_digit(*p)) {
            NumberText number;
            if (const char *behind = parse_number(p, number)) return behind;
            if (const char *behind = literal(p, "-Infinity")) return behind;
            return broken(p, "a number");
        }
        for (const char *word : {"null", "true", "false", "NaN", "Infinity"})
            if (const char *behind = literal(p, word)) return behind;
        return broken(p, "a value");
    }

    // The high bit of the first zero byte, and perhaps of bytes above it.
    static u64 zero_bytes(u64 word) { return (word - 0x0101010101010101u) & ~word & 0x8080808080808080u; }

    // Whether the lowest `bits` bits, zeros above them, hold a character that does not stand for itself in text.
    static bool is_special(u64 word, u64 bits) {
        const u64 filled = word | (bits ? 0x2020202020202020u << bits : 0x2020202020202020u);
        return (zero_bytes(filled ^ 0x5c5c5c5c5c5c5c5cu) |
                ((filled - 0x2020202020202020u) & ~filled & 0x8080808080808080u) | (filled & 0x8080808080808080u)) != 0;
    }

    static const char *literal(const char *p, const char *word) {
        const u64 n = std::strlen(word);
        return std::memcmp(p, word, n) == 0 ? p + n : nullptr;
    }

  private:
    enum Flag : u32 { ESCAPE = 1, CONTROL = 2, HIGH = 4 };

    static std::string character(char c) {
        return c >= ' ' && c < 0x7f ? std::string("'") + c + "'" : "byte " + std::to_string(u8(c));
    }

    const char *string_end(const char *p, u32 &flags) {
        for (;;) {
            const u64 word = load64(p);
            const u64 stop = zero_bytes(word ^ 0x2222222222222222u) | zero_bytes(word ^ 0x5c5c5c5c5c5c5c5cu) |
                             ((word - 0x2020202020202020u) & ~word & 0x8080808080808080u) |
                             (word & 0x8080808080808080u);
            if (!stop) {
                p += 8;
                continue;
            }
            p += __builtin_ctzll(stop) >> 3;
            const u8 c = static_cast<u8>(*p);
            if (p >= end_) return broken(end_, "the string's end");
            if (c == '"') return p;
            if (c == '\\') {
                flags |= ESCAPE;
                p += p + 1 < end_ ? 2 : 1;
            } else {
                flags |= c < 0x20 ? CONTROL : HIGH;
                ++p;
            }
        }
    }

    static i32 hex4(const char *p) {
        i32 value = 0;
        for (u32 i = 0; i < 4; ++i) {
            const char c = p[i];
            const i32 digit = c >= '0' && c <= '9'                     ? c - '0'
                              : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                                       : -1;
            if (digit < 0) return -1;
            value = value * 16 + digit;
        }
        return value;
    }

    // Turns `text` into its meaning in unescaped_; what is wrong with it, or nullptr. Reads at most 5 bytes past the
    // text.
    const char *unescape(std::string_view &text) {
        unescaped_.clear();
        const char *p = text.data(), *const end = p + text.size();
        while (p < end) {
            if (*p != '\\') {
                unescaped_ += *p++;
                continue;
            }
            const char c = p[1];
            p += 2;
            static constexpr char FROM[] = "\"\\/bfnrt", TO[] = "\"\\/\b\f\n\r\t";
            if (const char *at = c ? std::strchr(FROM, c) : nullptr) {
                unescaped_ += TO[at - FROM];
                continue;
            }
            i32 point = c == 'u' && end - p >= 4 ? hex4(p) : -1;
            if (point < 0) return "text with an unknown escape";
            p += 4;
            if (point >= 0xd800 && point < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
                const i32 low = hex4(p + 2);
                if (low >= 0xdc00 && low < 0xe000) {
                    point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
                    p += 6;
                }
            }
            if (point >= 0xd800 && point < 0xe000) return "text with half a surrogate pair";
            append_utf8(unescaped_, static_cast<u32>(point));
        }
        text = unescaped_;
        return nullptr;
    }

    // Arrays and objects without recursion: one bit a level says which is open.
    const char *skip_nested(const char *p, const char *&bad, u32 outside) {
        bool is_object[DEEPEST];
        u32 depth = 0;
        for (;;) {
            if (*p == '[' || *p == '{') {
                if (depth + outside >= DEEPEST) return too_deep(p);
                is_object[depth++] = *p == '{';
                p = space(p + 1);
                if (*p == ']' || *p == '}') goto closing;
                if (is_object[depth - 1]) p = skip_key(p, bad);
                if (!p) return nullptr;
                continue;
            }
            p = *p == '"' ? skip(p, bad) : skip_scalar(p);
            if (!p) return nullptr;
        closing:
            for (;;) {
                p = space(p);
                if (*p != (is_object[depth - 1] ? '}' : ']')) break;
                ++p;
                if (--depth == 0) return p;
            }
            if (*p != ',') return broken(p, is_object[depth - 1] ? "',' or '}'" : "',' or ']'");
            p = space(p + 1);
            if (is_object[depth - 1]) p = skip_key(p, bad);
            if (!p) return nullptr;
        }
    }

    const char *skip_key(const char *p, const char *&bad) {
        if (*p != '"') return broken(p, "a key");
        p = skip(p, bad);
        if (!p) return nullptr;
        p = space(p);
        return *p == ':' ? space(p + 1) : broken(p, "':'");
    }

    const char *too_deep(const char *p) {
        problem_ = "nested deeper than " + std::to_string(DEEPEST) + " levels at byte " + std::to_string(p - begin());
        return nullptr;
    }

    PaddedCopy copy_;
    const char *end_ = nullptr;
    std::string unescaped_, problem_;
};

}  // namespace st
