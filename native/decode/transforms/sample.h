// 1 where the hash of a text, or of a whole number's, lies below a bound, else 0.
#pragma once
#include "decode/cell_type.h"
#include "decode/text_hash.h"
#include "decode/transform.h"

namespace st::transforms {

class Sample final : public Transform {
  public:
    Sample(CellPlaces places, const Options &options)
        : Transform(std::move(places)), hasher_{32, static_cast<u32>(options.get<i64>("seed"))},
          below_(static_cast<u64>(options.get<i64>("below"))) {}

    void run(Cells &cells, u32 count) const override {
        const CellColumn &from = source(cells);
        f64 *to = result(cells).numbers.data();
        char buffer[24];
        for (u32 i = 0; i < count; ++i) {
            std::string_view text;
            if (from.holds == Holds::text) {
                text = from.texts[i];
            } else if (const f64 value = from.numbers[i]; is_exact_whole(value)) {
                text = integer_text(static_cast<u64>(std::abs(value)), value < 0, buffer);
            }
            to[i] = is_none(text) ? NO_NUMBER : static_cast<f64>(hasher_(text) < below_);
        }
    }

  private:
    const TextHasher hasher_;
    const u64 below_;
};

inline std::unique_ptr<Transform> sample(CellPlaces places, const Options &options) {
    return std::make_unique<Sample>(std::move(places), options);
}

}  // namespace st::transforms
