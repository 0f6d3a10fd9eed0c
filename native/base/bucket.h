// The table row of one category of the batch. A bucket outside the table is row 0: nothing but the table is ever read.
#pragma once
#include "base/lane.h"

namespace st {
inline namespace ST_ISA {

ST_INLINE i64 embedding_bucket(const i32 *categories_rc, i64 r, i64 columns, i64 column, i64 buckets) {
    i64 bucket = categories_rc[r * columns + column];
    return bucket >= 0 && bucket < buckets ? bucket : 0;
}

}  // namespace ST_ISA
}  // namespace st
