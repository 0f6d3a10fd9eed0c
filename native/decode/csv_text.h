// CSV text (RFC 4180) below the level of rows: cells, and where lines end. It lies in a scratch copy with line breaks
// behind it, so that every cell ends.
#pragma once
#include <cstring>
#include <string>
#include <string_view>

#include "decode/number_glance.h"
#include "decode/padded_copy.h"
#include "decode/utf8.h"

namespace st {

// What ends a cell.
struct CsvStop {
    char delimiter;

    bool operator()(char c) const { return c == delimiter || c == '\n' || c == '\r'; }
#if ST_GLANCE_SSE
    __m128i operator()(__m128i text) const {
        const __m128i breaks = _mm_or_si128(_mm_cmpeq_epi8(text, _mm_set1_epi8('\n')),
                                            _mm_cmpeq_epi8(text, _mm_set1_epi8('\r')));
        return _mm_or_si128(breaks, _mm_cmpeq_epi8(text, _mm_set1_epi8(delimiter)));
    }
#endif
};

class CsvText {
  public:
    // `skip_space`: spaces before a cell are none of it.
    CsvText(char delimiter, char quote, bool skip_space = false)
        : stop_{delimiter}, quote_(quote), skip_space_(skip_space) {}

    // A byte order mark is none of the text.
    void load(const char *bytes, u64 size) {
        copy_.load(bytes, size, '\n');
        begin_ = copy_.begin() + (size >= 3 && std::memcmp(bytes, BYTE_ORDER_MARK, 3) == 0 ? 3 : 0);
    }

    const char *begin() const { return begin_; }
    const char *end() const { return copy_.end(); }
    const CsvStop &stop() const { return stop_; }
    const std::string &problem() const { return problem_; }

    // Passes line breaks, and with them lines that hold nothing.
    const char *behind_breaks(const char *p) const {
        while (p < end() && (*p == '\n' || *p == '\r')) ++p;
        return p;
    }

    // The cell at p, without its quotes; returns what ends it, nullptr where its quote is never closed, as problem()
    // says. `bad`: why it is not usable, else nullptr. The view holds until the next call.
    const char *cell(const char *p, std::string_view &text, const char *&bad) {
        while (skip_space_ && *p == ' ') ++p;
        if (*p == quote_ && p < end()) return quoted(p + 1, text, bad);
        const char *const start = p;
        bool high = false;
        p = pass(p, high);
        text = {start, static_cast<u64>(p - start)};
        bad = high && !is_utf8(text) ? NOT_UTF8 : nullptr;
        return p;
    }

  private:
    static constexpr const char *NOT_UTF8 = "text that is not UTF-8";

    // To what ends the cell. `high`: whether it has other characters than ASCII's.
    const char *pass(const char *p, bool &high) const {
#if ST_GLANCE_SSE
        for (;; p += 16) {
            const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i *>(p));
            const u32 stops = static_cast<u32>(_mm_movemask_epi8(stop_(text)));
            const u32 before = stops ? (stops & (0 - stops)) - 1 : ~u32{0};   // the characters before the first
            high |= (static_cast<u32>(_mm_movemask_epi8(text)) & before) != 0;
            if (stops) return p + __builtin_ctz(stops);
        }
#else
        for (; !stop_(*p); ++p) high |= static_cast<u8>(*p) >= 0x80;
        return p;
#endif
    }

    // p stands behind the opening quote. Two quotes are one.
    const char *quoted(const char *p, std::string_view &text, const char *&bad) {
        const char *const start = p;
        bool doubled = false;
        for (;;) {
            const char *const found = static_cast<const char *>(std::memchr(p, quote_, static_cast<u64>(end() - p)));
            if (!found) {
                problem_ = "expected the closing quote of the cell at byte " +
                           std::to_string(start - 1 - copy_.begin()) + ", got the record's end";
                return nullptr;
            }
            const bool is_letter = found[1] == quote_;
            if (is_letter || doubled) {
                if (!doubled) letters_.clear();
                letters_.append(p, found + is_letter);
                doubled = true;
            }
            p = found + 1 + is_letter;
            if (!is_letter) break;
        }
        text = doubled ? std::string_view(letters_) : std::string_view(start, static_cast<u64>(p - 1 - start));
        bad = is_utf8(text) ? nullptr : NOT_UTF8;
        if (stop_(*p)) return p;
        bad = "text behind a closing quote";
        bool high = false;
        return pass(p, high);
    }

    PaddedCopy copy_;
    CsvStop stop_;
    char quote_;
    bool skip_space_;
    const char *begin_ = nullptr;
    std::string letters_, problem_;
};

}  // namespace st
