// The hash of a text, or of a whole number's.
#pragma once
#include "decode/transform.h"

namespace st::transforms {

class Hash final : public Transform {
  public:
    Hash(CellPlaces places, const Options &options)
        : Transform(std::move(places)),
          hasher_{static_cast<u32>(options.get<i64>("bits")), static_cast<u32>(options.get<i64>("seed"))} {}

    void run(Cells &cells, u32 count) const override {
        CellColumn &made = result(cells);
        const HashedCells hashed = cells.hashes.of(source(cells), hasher_, count);
        std::copy_n(hashed.there, count, made.given.begin());
        std::copy_n(hashed.hashes, count, made.hashes.begin());
    }

  private:
    const TextHasher hasher_;
};

inline std::unique_ptr<Transform> hash(CellPlaces places, const Options &options) {
    return std::make_unique<Hash>(std::move(places), options);
}

}  // namespace st::transforms
