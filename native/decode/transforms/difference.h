// The first less the second: numbers, or times in a unit.
#pragma once
#include "decode/transform.h"

namespace st::transforms {

class Difference final : public Transform {
  public:
    Difference(CellPlaces places, const Options &options)
        : Transform(std::move(places)), unit_ms_(options.number("unit_ms", 1)) {}

    void run(Cells &cells, u32 count) const override {
        const CellColumn &first = source(cells), &second = source(cells, 1);
        f64 *to = result(cells).numbers.data();
        if (first.holds == Holds::number) {
            const f64 *a = first.numbers.data(), *b = second.numbers.data();
            for (u32 i = 0; i < count; ++i) to[i] = number_or_none(a[i] - b[i]);
            return;
        }
        const i64 *a = first.times.data(), *b = second.times.data();   // each below 2^62 ms
        for (u32 i = 0; i < count; ++i) {
            const i64 ms = static_cast<i64>(static_cast<u64>(a[i]) - static_cast<u64>(b[i]));
            to[i] = a[i] == NO_TIME || b[i] == NO_TIME ? NO_NUMBER : static_cast<f64>(ms) / unit_ms_;
        }
    }

  private:
    const f64 unit_ms_;
};

inline std::unique_ptr<Transform> difference(CellPlaces places, const Options &options) {
    return std::make_unique<Difference>(std::move(places), options);
}

}  // namespace st::transforms
