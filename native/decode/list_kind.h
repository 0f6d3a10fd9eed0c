// What kinds have in common whose cells hold any number of values.
#pragma once
#include <string>

#include "decode/row_writer.h"

namespace st {

// The list is read: of one that is too long the row fails, or the first `most` values stay.
inline void end_values(RowWriter &row, u32 c, Place place, u64 most, bool cuts) {
    const u64 count = row.values(place);
    if (count > most && !cuts)
        return row.fail(static_cast<i32>(c), "expected at most " + std::to_string(most) + " values, got " +
                                                 std::to_string(count));
    row.end_values(c, place);
}

}  // namespace st
