// The hash of several columns' hashes, one behind the other as little-endian words of 64 bits.
#pragma once
#include "decode/transform.h"

namespace st::transforms {

class Cross final : public Transform {
  public:
    Cross(CellPlaces places, const Options &options)
        : Transform(std::move(places)),
          hasher_{static_cast<u32>(options.get<i64>("bits")), static_cast<u32>(options.get<i64>("seed"))} {
        const auto seeds = options.get<std::vector<i64>>("source_seeds");
        const auto bits = options.get<std::vector<i64>>("source_bits");
        if (seeds.size() != places_.sources.size() || bits.size() != seeds.size() || seeds.size() > MOST)
            throw std::invalid_argument("cross: expected a seed for each column");
        for (u64 i = 0; i < seeds.size(); ++i)
            parts_.push_back({static_cast<u32>(bits[i]), static_cast<u32>(seeds[i])});
    }

    void run(Cells &cells, u32 count) const override {
        CellColumn &made = result(cells);
        HashedCells parts[MOST];
        for (u64 k = 0; k < parts_.size(); ++k) parts[k] = cells.hashes.of(source(cells, k), parts_[k], count);
        u64 words[MOST];
        for (u32 i = 0; i < count; ++i) {
            u8 there = 1;
            for (u64 k = 0; k < parts_.size(); ++k) {
                words[k] = parts[k].hashes[i];
                there &= parts[k].there[i];
            }
            made.given[i] = there;
            made.hashes[i] = hasher_({reinterpret_cast<const char *>(words), 8 * parts_.size()});
        }
    }

  private:
    static constexpr u64 MOST = 16;

    const TextHasher hasher_;
    std::vector<TextHasher> parts_;
};

inline std::unique_ptr<Transform> cross(CellPlaces places, const Options &options) {
    return std::make_unique<Cross>(std::move(places), options);
}

}  // namespace st::transforms
