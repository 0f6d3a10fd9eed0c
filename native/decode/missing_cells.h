// What stood in cells of the row at hand that are missing all the same, a word or NaN: for the reason of a dead letter.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"

namespace st {

class MissingCells {
  public:
    // `row`: a number of the row's own.
    void add(u32 row, u32 column, std::string got) {
        if (row_ != row) cells_.clear(), row_ = row;
        cells_.emplace_back(column, std::move(got));
    }

    // Of a row's missing column.
    std::string got(u32 row, u32 column) const {
        if (row_ == row)
            for (const auto &[at, got] : cells_)
                if (at == column) return got;
        return "nothing (missing)";
    }

  private:
    u32 row_ = 0;
    std::vector<std::pair<u32, std::string>> cells_;
};

}  // namespace st
