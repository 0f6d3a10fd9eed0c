// 1 where the record gives no cell, whatever stands in for it, else 0.
#pragma once
#include "decode/transform.h"

namespace st::transforms {

class IsMissing final : public Transform {
  public:
    using Transform::Transform;
    void run(Cells &cells, u32 count) const override {
        const u8 *given = source(cells).given.data();
        f64 *y = result(cells).numbers.data();
        for (u32 i = 0; i < count; ++i) y[i] = !given[i];
    }
};

inline std::unique_ptr<Transform> is_missing(CellPlaces places, const Options &) {
    return std::make_unique<IsMissing>(std::move(places));
}

}  // namespace st::transforms
