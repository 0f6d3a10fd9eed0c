// The rows that a tally tells of and no slot holds, one at a time, each with the place and the reason.
#pragma once
#include <string_view>

#include "decode/decoder.h"

namespace st {

inline constexpr std::string_view left_out =
    "expected a value, got nothing (missing = \"skip\" leaves such rows out)";

// Calls take(row, path, reason) in the order of the rows, as long as it gives true. `path(column, row)` says where a
// cell of the record at hand stands.
template <class Path, class Take>
void each_bad_row(const RowTally &tally, Path path, Take take) {
    auto dead = tally.dead_rows.begin();
    auto filtered = tally.filtered_rows.begin();
    const auto dead_end = tally.dead_rows.end();
    const auto filtered_end = tally.filtered_rows.end();
    while (dead != dead_end || filtered != filtered_end) {
        if (filtered == filtered_end || (dead != dead_end && dead->row_from < filtered->row_from)) {
            if (!take(dead->row_from, dead->path, dead->reason)) return;
            for (i64 row = dead->row_from + 1; row < dead->row_to; ++row)
                if (!take(row, path(dead->column, row), dead->reason)) return;
            ++dead;
        } else {
            for (i64 row = filtered->row_from; row < filtered->row_to; ++row)
                if (!take(row, path(filtered->column, row), left_out)) return;
            ++filtered;
        }
    }
}

}  // namespace st
