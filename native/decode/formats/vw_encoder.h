// Vowpal Wabbit's text of a table: label and importance, then the features by index behind a bar.
#pragma once
#include "decode/sparse_text_encoder.h"

namespace st::formats {

class VwEncoder final : public SparseTextEncoder {
  protected:
    void write_head(const std::string &label, const std::string &weight, std::string &out) const override {
        out += label;
        if (!label.empty() && !weight.empty()) out += ' ', out += weight;
        out += " |";
    }
};

inline std::unique_ptr<RecordEncoder> vw_encoder() { return std::make_unique<VwEncoder>(); }

}  // namespace st::formats
