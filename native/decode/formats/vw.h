// Vowpal Wabbit's text: label, importance and tag, then namespaces of features, name:value each, behind bars. A
// feature's index is VW's own: the lowest bits of its hash.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "decode/sparse_text.h"
#include "decode/sparse_text_encoder.h"
#include "decode/vw_hash.h"

namespace st::formats {

class VwDecoder final : public SparseTextDecoder {
  public:
    VwDecoder(std::shared_ptr<const DecodePlan> plan, const Options &options)
        : SparseTextDecoder(std::move(plan)), mask_((u64{1} << options.get<i64>("bits", 18)) - 1) {
        for (u32 c = 0; c < plan_->columns.size(); ++c) {
            const Kind *const kind = plan_->columns[c].kind.get();
            if (!wanted(static_cast<i32>(c)) || kind->form() != CellForm::pairs) continue;
            wide_.push_back(static_cast<i32>(c));
            if (!kind->namespaces()) rest_ = static_cast<i32>(c);
            else
                for (const std::string &name : *kind->namespaces()) column_of_[name] = static_cast<i32>(c);
        }
    }

  protected:
    void read_line(const char *p, const char *end) override {
        const char *const bar = static_cast<const char *>(std::memchr(p, '|', static_cast<u64>(end - p)));
        if (!bar) return writer_.fail(NO_COLUMN, "expected a '|' before the features, got none");
        read_head(p, bar);
        for (const i32 column : wide_) {   // each by itself: the others' namespaces are passed over
            features_ = column;
            open_features();
            for (p = bar; p < end;) p = read_namespace(p + 1, end);
            close_features();
        }
    }

  private:
    // Label, importance and initial prediction; a tag begins with ' or stands at the bar.
    void read_head(const char *p, const char *bar) {
        i32 columns[] = {label_, weight_};
        for (u32 at = 0; (p = behind_spaces(p)) < bar; ++at) {
            const char *const word = word_end(p, bar);
            const bool is_marked = *p == '\'';
            if (is_marked || word == bar) return put(tag_, {p + is_marked, static_cast<u64>(word - p - is_marked)});
            if (at < std::size(columns)) put(columns[at], {p, static_cast<u64>(word - p)});
            p = word;
        }
    }

    static bool ends_name(char c) { return c == ' ' || c == ':' || c == '|' || c == '\t'; }
    static const char *name_end(const char *p, const char *end) {
        while (p < end && !ends_name(*p)) ++p;
        return p;
    }

    // From behind a bar up to the next one, or the end.
    const char *read_namespace(const char *p, const char *end) {
        u32 seed = 0;
        f32 factor = 1;
        if (p < end && !is_space(*p)) {
            const char *const name = name_end(p, end);
            if (!column_of_.empty() && !is_own({p, static_cast<u64>(name - p)})) return behind_namespace(name, end);
            seed = static_cast<u32>(vw_hash(p, name, 0));
            if (p = name; p < end && *p == ':' && !(p = read_value(p, end, factor))) return end;
        } else if (!column_of_.empty() && !is_own({})) {
            return behind_namespace(p, end);
        }
        u32 nameless = 0;
        while ((p = behind_spaces(p)) < end && *p != '|') {
            const char *const name = name_end(p, end);
            const u64 index = name == p ? u64{seed} + nameless++ : vw_hash(p, name, seed);
            f32 value = 1;
            if (p = name; p < end && *p == ':' && !(p = read_value(p, end, value))) return end;
            value *= factor;
            if (value != 0) feature(index & mask_, static_cast<f64>(value));
        }
        return p;
    }

    // Whether a namespace is one of the column being read.
    bool is_own(std::string_view name) const {
        const auto found = column_of_.find(name);
        return (found == column_of_.end() ? rest_ : found->second) == features_;
    }
    static const char *behind_namespace(const char *p, const char *end) {
        const void *const bar = std::memchr(p, '|', static_cast<u64>(end - p));
        return bar ? static_cast<const char *>(bar) : end;
    }

    // A number behind the colon at p; nullptr where there is none, and the row is lost.
    const char *read_value(const char *const colon, const char *end, f32 &value) {
        const char *word = colon + 1;
        while (word < end && !is_space(*word) && *word != '|') ++word;
        f64 exact;
        if (word > colon + 1 && read_number(colon + 1, word, exact)) [[likely]] {
            value = static_cast<f32>(exact);
            return word;
        }
        wrong_feature(colon, word);
        return nullptr;
    }

    u64 mask_;
    std::vector<i32> wide_;   // columns of features
    std::map<std::string, i32, std::less<>> column_of_;   // by the namespaces that they name
    i32 rest_ = NO_COLUMN;    // and the one that names none
};

inline std::unique_ptr<Decoder> vw(std::shared_ptr<const DecodePlan> plan, const Options &options) {
    return std::make_unique<VwDecoder>(std::move(plan), options);
}

// Vowpal Wabbit's text of a table: label, importance and tag, then the features by index behind bars, each column's in
// the first namespace that it names.
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
