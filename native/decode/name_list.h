// The first names of many, for a reason: `a, c, "d e" and 12 more`.
#pragma once
#include <string>
#include <string_view>

#include "decode/cell_type.h"

namespace st {

class NameList {
  public:
    void add(std::string_view name) {
        if (count_++ < SHOWN) text_ += (text_.empty() ? "" : ", ") + shown(name);
    }
    bool any() const { return count_; }
    std::string text() const {
        return count_ <= SHOWN ? text_ : text_ + " and " + std::to_string(count_ - SHOWN) + " more";
    }

  private:
    static constexpr u64 SHOWN = 8;
    u64 count_ = 0;
    std::string text_;
};

}  // namespace st
