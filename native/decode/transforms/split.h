// One part of a text between separators.
#pragma once
#include "decode/transform.h"

namespace st::transforms {

class Split final : public Transform {
  public:
    Split(CellPlaces places, const Options &options)
        : Transform(std::move(places)), by_(options.get<std::string>("by")), part_(options.get<i64>("part")) {
        if (by_.empty()) throw std::invalid_argument("split: expected a separator");
    }

    void run(Cells &cells, u32 count) const override {
        const std::string_view *from = source(cells).texts.data();
        std::string_view *to = result(cells).texts.data();
        for (u32 i = 0; i < count; ++i) {
            to[i] = is_none(from[i]) ? from[i] : part(from[i]);
            if (to[i].empty()) to[i] = {};
        }
    }

  private:
    // Separators are found from the text's beginning, also where parts are counted from its end.
    std::string_view part(std::string_view text) const {
        i64 wanted = part_;
        if (wanted < 0) {
            i64 parts = 1;
            for (u64 at = text.find(by_); at != text.npos; at = text.find(by_, at + by_.size())) ++parts;
            wanted += parts;
        }
        if (wanted < 0) return {};
        for (; wanted > 0; --wanted) {
            const u64 at = text.find(by_);
            if (at == text.npos) return {};
            text.remove_prefix(at + by_.size());
        }
        return text.substr(0, text.find(by_));
    }

    const std::string by_;
    const i64 part_;
};

inline std::unique_ptr<Transform> split(CellPlaces places, const Options &options) {
    return std::make_unique<Split>(std::move(places), options);
}

}  // namespace st::transforms
