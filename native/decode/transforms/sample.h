// 1 where the hash of a text, or of a whole number's, lies below a bound, else 0.
#pragma once
#include "decode/transform.h"

namespace st::transforms {

class Sample final : public Transform {
  public:
    Sample(CellPlaces places, const Options &options)
        : Transform(std::move(places)), hasher_{32, static_cast<u32>(options.get<i64>("seed"))},
          below_(static_cast<u64>(options.get<i64>("below"))) {}

    void run(Cells &cells, u32 count) const override {
        const HashedCells hashed = cells.hashes.of(source(cells), hasher_, count);
        f64 *to = result(cells).numbers.data();
        for (u32 i = 0; i < count; ++i)
            to[i] = hashed.there[i] ? static_cast<f64>(hashed.hashes[i] < below_) : NO_NUMBER;
    }

  private:
    const TextHasher hasher_;
    const u64 below_;
};

inline std::unique_ptr<Transform> sample(CellPlaces places, const Options &options) {
    return std::make_unique<Sample>(std::move(places), options);
}

}  // namespace st::transforms
