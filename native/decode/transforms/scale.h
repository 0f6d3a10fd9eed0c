// x * by + plus.
#pragma once
#include "decode/transform.h"

namespace st::transforms {

class Scale final : public Transform {
  public:
    Scale(CellPlaces places, const Options &options)
        : Transform(std::move(places)), by_(options.number("by", 1)), plus_(options.number("plus")) {}
    void run(Cells &cells, u32 count) const override {
        each_number(cells, count, [this](f64 x) { return x * by_ + plus_; });
    }

  private:
    const f64 by_, plus_;
};

inline std::unique_ptr<Transform> scale(CellPlaces places, const Options &options) {
    return std::make_unique<Scale>(std::move(places), options);
}

}  // namespace st::transforms
