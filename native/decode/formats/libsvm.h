// libsvm records: a line is a row, a label and then index:value pairs; what follows a # is passed over, and so is qid.
#pragma once
#include "decode/sparse_text.h"
#include "decode/sparse_text_encoder.h"

namespace st::formats {

class LibsvmDecoder final : public SparseTextDecoder {
  public:
    using SparseTextDecoder::SparseTextDecoder;

  protected:
    void read_line(const char *p, const char *end) override {
        if (const void *comment = std::memchr(p, '#', static_cast<u64>(end - p)))
            end = static_cast<const char *>(comment);
        p = behind_spaces(p);
        const char *word = word_end(p, end);
        if (!std::memchr(p, ':', static_cast<u64>(word - p))) {   // a request may be without
            put(label_, {p, static_cast<u64>(word - p)});
            p = word;
        }
        if (features_ == NO_COLUMN) return;
        open_features();
        while ((p = behind_spaces(p)) < end) {
            u64 index = 0;
            const char *const colon = number_text::digits(p, index);
            f64 value;
            if (word = word_end(colon, end); *colon == ':' && colon > p && colon - p < 19 && word > colon + 1 &&
                                             read_number(colon + 1, word, value)) [[likely]]
                feature(index, value);
            else if (std::string_view(p, static_cast<u64>(word - p)).substr(0, 4) != "qid:")
                wrong_feature(p, word);
            p = word;
        }
        close_features();
    }
};

inline std::unique_ptr<Decoder> libsvm(std::shared_ptr<const DecodePlan> plan) {
    return std::make_unique<LibsvmDecoder>(std::move(plan));
}

// libsvm text of a table: the label, then the features by index.
class LibsvmEncoder final : public SparseTextEncoder {
  protected:
    void write_head(const Head &head, std::string &out) const override { out += head.label; }
};

inline std::unique_ptr<RecordEncoder> libsvm_encoder() { return std::make_unique<LibsvmEncoder>(); }

}  // namespace st::formats
