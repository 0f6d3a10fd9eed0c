// The hash of several columns' hashes, one behind the other as little-endian words of 64 bits.
#pragma once
#include "decode/cell_type.h"
#include "decode/text_hash.h"
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
        u64 words[MOST];
        for (u32 i = 0; i < count; ++i) {
            bool there = true;
            for (u64 part = 0; part < parts_.size(); ++part)
                there &= hash(source(cells, part), i, parts_[part], words[part]);
            made.given[i] = there;
            made.hashes[i] = hasher_({reinterpret_cast<const char *>(words), 8 * parts_.size()});
        }
    }

  private:
    static constexpr u64 MOST = 16;

    static bool hash(const CellColumn &cells, u32 row, const TextHasher &hasher, u64 &to) {
        to = 0;
        if (cells.holds == Holds::hash) return to = cells.hashes[row], cells.given[row];
        if (cells.holds == Holds::text) {
            if (is_none(cells.texts[row])) return false;
            to = hasher(cells.texts[row]);
            return true;
        }
        const f64 value = cells.numbers[row];
        if (!is_exact_whole(value)) return false;
        char buffer[24];
        to = hasher(integer_text(static_cast<u64>(std::abs(value)), value < 0, buffer));
        return true;
    }

    const TextHasher hasher_;
    std::vector<TextHasher> parts_;
};

inline std::unique_ptr<Transform> cross(CellPlaces places, const Options &options) {
    return std::make_unique<Cross>(std::move(places), options);
}

}  // namespace st::transforms
