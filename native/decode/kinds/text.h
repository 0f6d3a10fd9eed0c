// Text as the runs of so many words, or letters, that follow each other in it (n-grams), each hashed into a bucket:
// int32 in a ragged block, in the text's order and at one place the shorter first. A word is a run of code points of
// the ranges that the column names; between the words of a run stands one space.
#pragma once
#include <vector>

#include "decode/kinds/category.h"
#include "decode/small_letters.h"
#include "decode/utf8.h"

namespace st::kinds {

class Text final : public Buckets {
  public:
    Text(const std::string &column, const Options &options)
        : Buckets(column, options), by_words_(options.get<bool>("words")), lowers_(options.get<bool>("lower_case")),
          least_(static_cast<u64>(options.get<i64>("least"))), longest_(static_cast<u64>(options.get<i64>("longest"))),
          small_(options.get<std::vector<i64>>("pairs")), in_word_(CODE_POINTS / 64),
          stand_in_(options.get<std::string>("missing_value")) {
        if (least_ < 1 || longest_ < least_ || longest_ > MOST_TOKENS)
            throw std::invalid_argument(column + ": n-grams of 1 to 8 tokens, the shorter length first");
        const std::vector<i64> ranges = options.get<std::vector<i64>>("ranges");
        for (u64 i = 0; i + 1 < ranges.size(); i += 2)
            for (i64 code = ranges[i]; code < ranges[i + 1] && code < CODE_POINTS; ++code)
                in_word_[static_cast<u64>(code) / 64] |= u64{1} << (code & 63);
        for (u32 code = 0; code < 0x80; ++code) ascii_[code] = static_cast<u8>(letter_of(code));
    }

    const char *expected() const override { return "text"; }

    void text(RowWriter &row, u32 c, std::string_view utf8) const override {
        thread_local Tokens tokens;   // grows to the longest text there was
        if (by_words_) take_words(utf8, tokens);
        else take_letters(utf8, tokens);
        start(row);
        const u64 count = tokens.begins.size();
        for (u64 first = 0; first < count; ++first)
            for (u64 size = least_; size <= longest_ && first + size <= count; ++size) {
                const char *const begin = tokens.letters.data() + tokens.begins[first];
                add(row, {begin, tokens.ends[first + size - 1] - tokens.begins[first]});
            }
        end(row, c);
    }
    void stand_in(RowWriter &row, u32 c) const override { text(row, c, stand_in_); }   // of the empty text none

  private:
    static constexpr i64 CODE_POINTS = 0x110000;
    static constexpr u64 MOST_TOKENS = 8;

    // Side by side, as an entry of several has them.
    struct Tokens {
        std::vector<char> letters;
        std::vector<u64> begins, ends;

        void start(u64 most_bytes) {
            if (letters.size() < most_bytes) letters.resize(most_bytes);
            begins.clear();
            ends.clear();
        }
    };

    // Of a text of n bytes: n / 2 words at most, hence as many spaces.
    void take_words(std::string_view utf8, Tokens &tokens) const {
        tokens.start(SmallLetters::GROWTH * utf8.size() + utf8.size() / 2 + 8);
        const char *const end = utf8.data() + utf8.size();
        char *const begin = tokens.letters.data(), *to = begin;
        bool within = false;
        for (const char *at = utf8.data(); at < end;) {
            const u8 first = static_cast<u8>(*at);
            u32 letter;
            if (first < 0x80) {
                letter = ascii_[first];
                ++at;
            } else {
                letter = letter_of(take_point(at));
            }
            const bool belongs = letter != 0;
            if (belongs != within) {
                if (within) tokens.ends.push_back(static_cast<u64>(to - begin));
                if (belongs && to > begin) *to++ = ' ';
                if (belongs) tokens.begins.push_back(static_cast<u64>(to - begin));
            }
            if (letter < 0x80) {
                *to = static_cast<char>(letter);   // what belongs to no word is written over
                to += belongs;
            } else {
                to = put_point(to, letter);
            }
            within = belongs;
        }
        if (within) tokens.ends.push_back(static_cast<u64>(to - begin));
    }

    // What stands in a word for a code point; 0: it belongs to none.
    u32 letter_of(u32 code) const {
        const bool belongs = in_word_[code / 64] >> (code & 63) & 1;
        return !belongs ? 0 : lowers_ ? small_.of(code) : code;
    }

    void take_letters(std::string_view utf8, Tokens &tokens) const {
        tokens.start(SmallLetters::GROWTH * utf8.size() + 8);
        const char *const end = utf8.data() + utf8.size();
        char *const begin = tokens.letters.data(), *to = begin;
        for (const char *at = utf8.data(); at < end;) {
            const u32 code = take_point(at);
            tokens.begins.push_back(static_cast<u64>(to - begin));
            to = put_point(to, lowers_ ? small_.of(code) : code);
            tokens.ends.push_back(static_cast<u64>(to - begin));
        }
    }

    const bool by_words_, lowers_;
    const u64 least_, longest_;   // tokens of an entry
    const SmallLetters small_;
    std::vector<u64> in_word_;    // a bit a code point
    u8 ascii_[0x80] = {};         // letter_of() each
    const std::string stand_in_;
};

inline std::unique_ptr<Kind> text(const std::string &column, const Options &options) {
    return std::make_unique<Text>(column, options);
}

}  // namespace st::kinds
