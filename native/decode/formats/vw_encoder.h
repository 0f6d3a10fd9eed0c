// Vowpal Wabbit's text of a table: label, importance and tag, then the features by index behind bars, each column's in
// the first namespace that it names.
#pragma once
#include "decode/formats/vw.h"
#include "decode/sparse_text_encoder.h"

namespace st::formats {

class VwEncoder final : public SparseTextEncoder {
  protected:
    void write_head(const Head &head, std::string &out) const override {
        out += head.label;
        if (!head.label.empty() && !head.weight.empty()) out += ' ', out += head.weight;
        if (!head.tag.empty()) out += " '", out += head.tag;
    }
    u64 write_namespace(const std::string &name, std::string &out) const override {
        out += " |";
        out += name;
        const u32 seed = static_cast<u32>(vw_hash(name.data(), name.data() + name.size(), 0));
        return name.empty() ? 0 : (u64{1} << 32) - seed;
    }
};

inline std::unique_ptr<RecordEncoder> vw_encoder() { return std::make_unique<VwEncoder>(); }

}  // namespace st::formats
