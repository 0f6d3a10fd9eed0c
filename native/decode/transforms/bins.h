// How many of the edges, which ascend, are at most x.
#pragma once
#include "decode/transform.h"

namespace st::transforms {

class Bins final : public Transform {
  public:
    Bins(CellPlaces places, const Options &options)
        : Transform(std::move(places)), edges_(options.get<std::vector<f64>>("edges")) {}
    void run(Cells &cells, u32 count) const override {
        if (count > 1 && edges_.size() <= FEW) return few(cells, count);
        each_number(cells, count, [this](f64 x) {
            u64 from = 0;
            for (u64 left = edges_.size(); left;) {   // the first edge above x, without a branch to foresee
                const u64 half = (left + 1) / 2;
                from += edges_[from + half - 1] <= x ? half : 0;
                left -= half;
            }
            return x == x ? static_cast<f64>(from) : x;
        });
    }

  private:
    static constexpr u64 FEW = 32;   // are counted one by one sooner, by whole vectors, than halved

    void few(Cells &cells, u32 count) const {
        const f64 *x = source(cells).numbers.data();
        f64 *y = result(cells).numbers.data();
        for (u32 i = 0; i < count; ++i) y[i] = x[i] == x[i] ? 0 : x[i];
        for (const f64 edge : edges_)
            for (u32 i = 0; i < count; ++i) y[i] += edge <= x[i] ? 1.0 : 0.0;
    }

    const std::vector<f64> edges_;
};

inline std::unique_ptr<Transform> bins(CellPlaces places, const Options &options) {
    return std::make_unique<Bins>(std::move(places), options);
}

}  // namespace st::transforms
