// Texts of a column as the packed wire has them: words and codes, texts of one size, or one text a row.
#pragma once
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "decode/cell_type.h"

namespace st {

// The texts of a column's rows, one behind the other; an equal text is kept once. Reused from column to column.
class PackedTexts {
  public:
    void clear() {
        words_.clear();
        ends_.clear();
        codes_.clear();
        letters_.clear();
    }

    void add(std::string_view text) {
        const auto [found, fresh] = words_.try_emplace(std::string(text), static_cast<u32>(ends_.size()));
        if (fresh) {
            letters_ += text;
            ends_.push_back(static_cast<u32>(letters_.size()));
        }
        codes_.push_back(found->second);
    }

    // Their bytes by the type that suits them. `more` is what the type's entry says; `missing(row)` is told of an
    // empty text among texts of one size.
    template <class Missing>
    CellType encode(std::string &data, u32 &more, Missing missing) const {
        data.clear();
        if (2 * ends_.size() <= codes_.size()) {
            append(data, codes_);
            const u32 count = static_cast<u32>(ends_.size());
            data.append(reinterpret_cast<const char *>(&count), 4);
            append(data, ends_);
            data += letters_;
            return CellType::words;
        }
        if (const u32 size = common_size()) {
            more = size;
            put_fixed(data, size, missing);
            return CellType::fixed;
        }
        put_texts(data);
        return CellType::text;
    }

    // One text a row, behind what there is.
    void put_texts(std::string &data) const {
        u32 end = 0;
        std::string all;
        std::vector<u32> ends;
        for (u32 code : codes_) {
            all += word(code);
            ends.push_back(end += static_cast<u32>(word(code).size()));
        }
        append(data, ends);
        data += all;
    }

    static void append(std::string &data, const std::vector<u32> &values) {
        data.append(reinterpret_cast<const char *>(values.data()), values.size() * 4);
    }

  private:
    std::string_view word(u32 code) const {
        const u32 from = code ? ends_[code - 1] : 0;
        return std::string_view(letters_).substr(from, ends_[code] - from);
    }

    // The bytes of each text, where all that are there have as many; else 0.
    u32 common_size() const {
        u32 common = 0, from = 0;
        for (u32 end : ends_) {
            const u32 size = end - std::exchange(from, end);
            if (size && common && size != common) return 0;
            if (size) common = size;
        }
        return common;
    }

    template <class Missing>
    void put_fixed(std::string &data, u32 size, Missing missing) const {
        data.assign(codes_.size() * size, 0);
        for (u64 i = 0; i < codes_.size(); ++i) {
            const std::string_view text = word(codes_[i]);
            if (text.empty()) missing(i);
            else std::memcpy(data.data() + size * i, text.data(), size);
        }
    }

    std::unordered_map<std::string, u32> words_;
    std::vector<u32> ends_, codes_;   // of each word where it ends in the letters; of each row its word
    std::string letters_;
};

}  // namespace st
