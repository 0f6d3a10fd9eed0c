// Letters of texts that stay where they are until the next clear(). Grows to the most there ever was, then stays.
#pragma once
#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace st {

class Letters {
  public:
    struct Mark {   // up to where there are letters
        u64 page = 0, used = 0;
    };

    void clear() { back_to({}); }
    Mark mark() const { return {page_, used_}; }
    void back_to(Mark mark) { page_ = mark.page, used_ = mark.used; }
    u64 pages() const { return page_; }   // that are full

    char *room(u64 size) {
        while (page_ < pages_.size() && used_ + size > pages_[page_].size) ++page_, used_ = 0;
        if (page_ == pages_.size()) {
            const u64 bytes = std::max<u64>(size, PAGE);
            pages_.push_back({std::make_unique<char[]>(bytes), bytes});
        }
        used_ += size;
        return pages_[page_].bytes.get() + used_ - size;
    }

    std::string_view keep(std::string_view text) {
        if (text.empty()) return {"", 0};
        char *to = room(text.size());
        std::copy(text.begin(), text.end(), to);
        return {to, text.size()};
    }

  private:
    static constexpr u64 PAGE = 1 << 14;
    struct Page {
        std::unique_ptr<char[]> bytes;
        u64 size;
    };
    std::vector<Page> pages_;
    u64 page_ = 0, used_ = 0;
};

}  // namespace st
