// The first of a batch's entries in the same bucket: a hash table of the batch, which stays in the cache however long
// the embedding table is. Host only.
#pragma once
#include "base/lane.h"

#if !ST_CUDA
namespace st {
inline namespace ST_ISA {

class FirstSeen {
  public:
    // slots: at least slots_of(entries), of any content
    ST_MEMBER FirstSeen(i64 *slots, i64 entries) : slots_(slots) {
        while ((i64{1} << (64 - shift_)) < 2 * entries) --shift_;
        for (i64 i = 0; i < i64{1} << (64 - shift_); ++i) slots_[i] = empty;
    }
    // `entry`, or the one of an earlier call with the same bucket
    ST_MEMBER i32 of(i64 bucket, i64 entry) {
        const u64 mask = (u64{1} << (64 - shift_)) - 1;
        for (u64 at = (static_cast<u64>(bucket) * 0x9E3779B97F4A7C15u) >> shift_;; at = (at + 1) & mask) {
            if (slots_[at] == empty) slots_[at] = bucket << 32 | entry;
            if (slots_[at] >> 32 == bucket) return static_cast<i32>(slots_[at] & 0xFFFFFFFF);
        }
    }

  private:
    static constexpr i64 empty = -1;   // no bucket is negative
    i64 *slots_;
    int shift_ = 63;   // what a product is shifted by to become a slot (Knuth's multiplicative hashing)
};

}  // namespace ST_ISA
}  // namespace st
#endif
