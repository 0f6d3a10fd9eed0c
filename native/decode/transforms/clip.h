// A number, or the nearer of two bounds.
#pragma once
#include "decode/transform.h"

namespace st::transforms {

class Clip final : public Transform {
  public:
    Clip(CellPlaces places, const Options &options)
        : Transform(std::move(places)), low_(options.number("low", -std::numeric_limits<f64>::infinity())),
          high_(options.number("high", std::numeric_limits<f64>::infinity())) {}
    void run(Cells &cells, u32 count) const override {
        each_number(cells, count, [this](f64 x) { return x < low_ ? low_ : x > high_ ? high_ : x; });
    }

  private:
    const f64 low_, high_;
};

inline std::unique_ptr<Transform> clip(CellPlaces places, const Options &options) {
    return std::make_unique<Clip>(std::move(places), options);
}

}  // namespace st::transforms
