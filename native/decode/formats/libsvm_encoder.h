// libsvm text of a table: the label, then the features by index.
#pragma once
#include "decode/sparse_text_encoder.h"

namespace st::formats {

class LibsvmEncoder final : public SparseTextEncoder {
  protected:
    void write_head(const Head &head, std::string &out) const override { out += head.label; }
};

inline std::unique_ptr<RecordEncoder> libsvm_encoder() { return std::make_unique<LibsvmEncoder>(); }

}  // namespace st::formats
