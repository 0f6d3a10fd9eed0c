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
        std::copy_n(parts[0].there, count, made.given.begin());
        for (u64 k = 1; k < parts_.size(); ++k)
            for (u32 i = 0; i < count; ++i) made.given[i] &= parts[k].there[i];
        if (hasher_.bits == 32) side_by_side(parts, count, made.hashes.data());
        else one_by_one(parts, count, made.hashes.data());
    }

  private:
    static constexpr u64 MOST = 16;

    // By whole vectors: a word of all rows, then the next.
    void side_by_side(const HashedCells *parts, u32 count, u64 *to) const {
        u32 hashes[BLOCK_ROWS];
        std::fill_n(hashes, count, hasher_.seed);
        for (u64 k = 0; k < parts_.size(); ++k) {
            const u64 *const words = parts[k].hashes;
            for (u32 i = 0; i < count; ++i) {
                const u32 low = murmur3_next(hashes[i], static_cast<u32>(words[i]));
                hashes[i] = murmur3_next(low, static_cast<u32>(words[i] >> 32));
            }
        }
        for (u32 i = 0; i < count; ++i) to[i] = murmur3_end(hashes[i], 8 * parts_.size());
    }

    void one_by_one(const HashedCells *parts, u32 count, u64 *to) const {
        u64 words[MOST];
        for (u32 i = 0; i < count; ++i) {
            for (u64 k = 0; k < parts_.size(); ++k) words[k] = parts[k].hashes[i];
            to[i] = hasher_({reinterpret_cast<const char *>(words), 8 * parts_.size()});
        }
    }

    const TextHasher hasher_;
    std::vector<TextHasher> parts_;
};

inline std::unique_ptr<Transform> cross(CellPlaces places, const Options &options) {
    return std::make_unique<Cross>(std::move(places), options);
}

}  // namespace st::transforms
