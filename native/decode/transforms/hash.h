// The hash of a text, or of a whole number's.
#pragma once
#include "decode/cell_type.h"
#include "decode/text_hash.h"
#include "decode/transform.h"

namespace st::transforms {

class Hash final : public Transform {
  public:
    Hash(CellPlaces places, const Options &options)
        : Transform(std::move(places)),
          hasher_{static_cast<u32>(options.get<i64>("bits")), static_cast<u32>(options.get<i64>("seed"))} {}

    void run(Cells &cells, u32 count) const override {
        const CellColumn &from = source(cells);
        CellColumn &made = result(cells);
        char buffer[24];
        for (u32 i = 0; i < count; ++i) {
            std::string_view text;
            if (from.holds == Holds::text) {
                text = from.texts[i];
            } else if (const f64 value = from.numbers[i]; is_exact_whole(value)) {
                text = integer_text(static_cast<u64>(std::abs(value)), value < 0, buffer);
            }
            made.given[i] = !is_none(text);
            made.hashes[i] = hasher_(text);
        }
    }

  private:
    const TextHasher hasher_;
};

inline std::unique_ptr<Transform> hash(CellPlaces places, const Options &options) {
    return std::make_unique<Hash>(std::move(places), options);
}

}  // namespace st::transforms
