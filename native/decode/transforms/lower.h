// Capitals as small letters, one by one: ASCII's, and those of a table of code points.
#pragma once
#include "decode/small_letters.h"
#include "decode/transform.h"
#include "decode/utf8.h"

namespace st::transforms {

class Lower final : public Transform {
  public:
    Lower(CellPlaces places, const Options &options)
        : Transform(std::move(places)), small_(options.get<std::vector<i64>>("pairs")) {}

    void run(Cells &cells, u32 count) const override {
        const std::string_view *from = source(cells).texts.data();
        std::string_view *to = result(cells).texts.data();
        for (u32 i = 0; i < count; ++i) to[i] = is_none(from[i]) ? from[i] : lower(from[i], cells.letters);
    }

  private:
    std::string_view lower(std::string_view text, Letters &letters) const {
        if (text.empty()) return text;
        char *const begin = letters.room(SmallLetters::GROWTH * text.size());
        char *to = begin;
        const char *const end = text.data() + text.size();
        for (const char *at = text.data(); at < end;) {
            const u8 first = static_cast<u8>(*at);
            if (first < 0x80) *to++ = static_cast<char>(first >= 'A' && first <= 'Z' ? first + 32 : first), ++at;
            else to = put_point(to, small_.of(take_point(at)));
        }
        return {begin, static_cast<u64>(to - begin)};
    }

    const SmallLetters small_;
};

inline std::unique_ptr<Transform> lower(CellPlaces places, const Options &options) {
    return std::make_unique<Lower>(std::move(places), options);
}

}  // namespace st::transforms
