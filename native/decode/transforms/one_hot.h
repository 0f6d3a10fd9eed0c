// 1 where a cell is the result's own value, else 0.
#pragma once
#include "decode/same_text.h"
#include "decode/transform.h"

namespace st::transforms {

class OneHot final : public Transform {
  public:
    OneHot(CellPlaces places, const Options &options)
        : Transform(std::move(places)), texts_(options.get<std::vector<std::string>>("values")) {
        if (texts_.size() != places_.results.size())
            throw std::invalid_argument("one_hot: expected a result for each value");
        for (const std::string &text : texts_) numbers_.push_back(std::strtod(text.c_str(), nullptr));
    }

    void run(Cells &cells, u32 count) const override {
        const CellColumn &from = source(cells);
        for (u64 k = 0; k < texts_.size(); ++k) {
            f64 *to = result(cells, k).numbers.data();
            if (from.holds == Holds::text) {
                for (u32 i = 0; i < count; ++i)
                    to[i] = is_none(from.texts[i]) ? NO_NUMBER : static_cast<f64>(same_text(from.texts[i], texts_[k]));
                continue;
            }
            const f64 *x = from.numbers.data(), value = numbers_[k];
            for (u32 i = 0; i < count; ++i) to[i] = x[i] == x[i] ? static_cast<f64>(x[i] == value) : NO_NUMBER;
        }
    }

  private:
    const std::vector<std::string> texts_;
    std::vector<f64> numbers_;
};

inline std::unique_ptr<Transform> one_hot(CellPlaces places, const Options &options) {
    return std::make_unique<OneHot>(std::move(places), options);
}

}  // namespace st::transforms
