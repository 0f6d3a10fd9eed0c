// Capitals as small letters, one by one: ASCII's, and those of a table of code points.
#pragma once
#include <algorithm>

#include "decode/transform.h"

namespace st::transforms {

class Lower final : public Transform {
  public:
    Lower(CellPlaces places, const Options &options)
        : Transform(std::move(places)), pairs_(options.get<std::vector<i64>>("pairs")) {}

    void run(Cells &cells, u32 count) const override {
        const std::string_view *from = source(cells).texts.data();
        std::string_view *to = result(cells).texts.data();
        for (u32 i = 0; i < count; ++i) to[i] = is_none(from[i]) ? from[i] : lower(from[i], cells.letters);
    }

  private:
    std::string_view lower(std::string_view text, Letters &letters) const {
        if (text.empty()) return text;
        char *const begin = letters.room(2 * text.size());   // a small letter may have a byte more
        char *to = begin;
        for (u64 at = 0; at < text.size();) {
            const u8 first = static_cast<u8>(text[at]);
            if (first < 0x80) {
                *to++ = static_cast<char>(first >= 'A' && first <= 'Z' ? first + 32 : first);
                ++at;
                continue;
            }
            const u64 bytes = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
            u32 code = first & (bytes == 2 ? 0x1f : bytes == 3 ? 0x0f : 0x07);
            for (u64 k = 1; k < bytes; ++k) code = code << 6 | (static_cast<u8>(text[at + k]) & 0x3f);
            to = put(to, small(code));
            at += bytes;
        }
        return {begin, static_cast<u64>(to - begin)};
    }

    u32 small(u32 code) const {
        u64 low = 0, high = pairs_.size() / 2;
        while (low < high) {
            const u64 middle = (low + high) / 2;
            if (pairs_[2 * middle] < i64{code}) low = middle + 1;
            else high = middle;
        }
        return 2 * low < pairs_.size() && pairs_[2 * low] == i64{code} ? static_cast<u32>(pairs_[2 * low + 1]) : code;
    }

    static char *put(char *to, u32 code) {
        const u32 more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        constexpr u32 HEADS[] = {0, 0xc0, 0xe0, 0xf0};
        *to++ = static_cast<char>(HEADS[more] | code >> 6 * more);
        for (u32 k = more; k-- > 0;) *to++ = static_cast<char>(0x80 | (code >> 6 * k & 0x3f));
        return to;
    }

    const std::vector<i64> pairs_;
};

inline std::unique_ptr<Transform> lower(CellPlaces places, const Options &options) {
    return std::make_unique<Lower>(std::move(places), options);
}

}  // namespace st::transforms
