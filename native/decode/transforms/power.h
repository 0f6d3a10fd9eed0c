// x ** exponent; missing where that is no real number.
#pragma once
#include "decode/plain_math.h"
#include "decode/transform.h"

namespace st::transforms {

class Power final : public Transform {
  public:
    Power(CellPlaces places, const Options &options)
        : Transform(std::move(places)), exponent_(options.number("exponent")) {}
    void run(Cells &cells, u32 count) const override {
        if (exponent_ == 0.5) return each_number(cells, count, [](f64 x) { return plain_power(x, 0.5); });
        if (exponent_ == 2) return each_number(cells, count, [](f64 x) { return plain_power(x, 2); });
        each_number(cells, count, [this](f64 x) { return plain_power(x, exponent_); });
    }

  private:
    const f64 exponent_;
};

inline std::unique_ptr<Transform> power(CellPlaces places, const Options &options) {
    return std::make_unique<Power>(std::move(places), options);
}

}  // namespace st::transforms
