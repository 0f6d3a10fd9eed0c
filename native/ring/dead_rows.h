// Why rows of a record became dead letters: what decoders say and the dead letter ring carries.
#pragma once
#include <string>

#include "base/types.h"

namespace st {

// Rows [row_from, row_to) of the record could not be used; path and reason say where and why.
struct DeadRows {
    i64 row_from, row_to;
    std::string path;               // "$.dep_delay", "$[3].carrier", "$" for the record
    std::string reason;             // "expected number, got \"n/a\""
    bool remainder;                 // true: the rest of the record cannot be decoded; counts as one row
    i32 column = -1;                // whose cell it was, of all these rows; -1: the row as a whole
};

}  // namespace st
