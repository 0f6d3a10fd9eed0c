// log(1 + x), of x above -1.
#pragma once
#include "decode/plain_math.h"
#include "decode/transform.h"

namespace st::transforms {

class Log1p final : public Transform {
  public:
    using Transform::Transform;
    void run(Cells &cells, u32 count) const override {
        each_number(cells, count, [](f64 x) { return plain_log1p(x); });
    }
};

inline std::unique_ptr<Transform> log1p(CellPlaces places, const Options &) {
    return std::make_unique<Log1p>(std::move(places));
}

}  // namespace st::transforms
