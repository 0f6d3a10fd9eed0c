// A record's bytes with zeros (or others) behind them, so that words may be loaded past the end. Grows to the largest
// record, then stays.
#pragma once
#include <cstring>
#include <vector>

#include "base/types.h"

namespace st {

class PaddedCopy {
  public:
    static constexpr u64 PADDING = 64;

    void load(const char *bytes, u64 size, char behind = 0) {
        if (buffer_.size() < size + PADDING) buffer_.resize(2 * size + PADDING);
        std::memcpy(buffer_.data(), bytes, size);
        std::memset(buffer_.data() + size, behind, PADDING);
        end_ = buffer_.data() + size;
    }

    const char *begin() const { return buffer_.data(); }
    const char *end() const { return end_; }

  private:
    std::vector<char> buffer_;
    const char *end_ = nullptr;
};

}  // namespace st
