// A column's cells once more.
#pragma once
#include "decode/transform.h"

namespace st::transforms {

class Rename final : public Transform {
  public:
    using Transform::Transform;
    void run(Cells &cells, u32 count) const override {
        const CellColumn &from = source(cells);
        CellColumn &to = result(cells);
        if (count == 1 && from.holds == Holds::number) [[likely]] {
            to.numbers[0] = from.numbers[0];
            return;
        }
        std::copy_n(from.given.begin(), count, to.given.begin());
        if (from.holds == Holds::number) std::copy_n(from.numbers.begin(), count, to.numbers.begin());
        if (from.holds == Holds::time) std::copy_n(from.times.begin(), count, to.times.begin());
        if (from.holds == Holds::text) std::copy_n(from.texts.begin(), count, to.texts.begin());
        if (from.holds == Holds::hash) std::copy_n(from.hashes.begin(), count, to.hashes.begin());
    }
};

inline std::unique_ptr<Transform> rename(CellPlaces places, const Options &) {
    return std::make_unique<Rename>(std::move(places));
}

}  // namespace st::transforms
