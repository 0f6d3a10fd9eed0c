// The first of a batch's entries in the same bucket: a hash table of the batch, which stays in the cache however long
// the embedding table is. Host only.
#pragma once
#include "base/bucket.h"

#if !ST_CUDA
namespace st {
inline namespace ST_ISA {

class FirstSeen {
  public:
    // slots: at least slots_of(entries), of any content
    ST_MEMBER FirstSeen(i64 *slots, i64 entries) : slots_(slots) {
        while ((i64{1} << (32 - shift_)) < 2 * entries) --shift_;
        for (i64 i = 0; i < i64{1} << (32 - shift_); ++i) slots_[i] = empty;
    }
    // Of each entry from `first` to before `end`: itself, or the first one of an earlier turn with the same bucket.
    // Whether there was one, and whether its slot is another bucket's, nobody foresees, so neither is a branch. Once it
    // is another's it stays so: those entries are looked for from the next slot on, behind the others.
    template <class BucketOf>
    ST_MEMBER void look(i64 first, i64 end, BucketOf bucket_of, i32 *lead_e) {
        constexpr i64 together = 128;
        u32 buckets[together], places[together], displaced[together];
        for (; first < end; first += together) {
            const i64 count = smaller(together, end - first);
            ST_FOR(i, count) {
                buckets[i] = static_cast<u32>(bucket_of(first + i));
                places[i] = buckets[i] * 0x9E3779B1u >> shift_;
            }
            u32 others = 0;
            for (u32 i = 0; i < count; ++i) {
                displaced[others] = i;
                others += !at(places[i], buckets[i], first + i, lead_e);
            }
            const u32 mask = ~u32{0} >> shift_;
            for (u32 k = 0; k < others; ++k) {
                const u32 i = displaced[k];
                u32 place = places[i];
                do place = (place + 1) & mask;
                while (!at(place, buckets[i], first + i, lead_e));
            }
        }
    }

  private:
    // Whether the slot is the bucket's, or becomes it.
    ST_MEMBER bool at(u32 place, i64 bucket, i64 entry, i32 *lead_e) {
        const i64 held = slots_[place], vacant = held >> 63;
        const i64 found = (held & ~vacant) | ((bucket << 32 | entry) & vacant);
        slots_[place] = found;
        lead_e[entry] = static_cast<i32>(found);
        return found >> 32 == bucket;
    }

    static constexpr i64 empty = -1;   // no bucket is negative
    i64 *slots_;
    int shift_ = 31;   // what a product is shifted by to become a slot (Knuth's multiplicative hashing)
};

// The same for each entry of a batch; -1 in rows of weight 0. Rows that count and follow each other go together.
template <class BucketOf>
ST_INLINE void look_at_rows(i64 rows, const i32 *ends_r, const f32 *weight_r, BucketOf bucket_of, i64 *seen_s,
                            i32 *lead_e) {
    FirstSeen seen(seen_s, entry_count(rows, ends_r));
    for (i64 r = 0, next = 0; r < rows; r = next) {
        const bool counts = weight_r[r] > 0;
        while (next < rows && (weight_r[next] > 0) == counts) ++next;
        const i64 first = ends_r ? first_entry(ends_r, r) : r, end = ends_r ? first_entry(ends_r, next) : next;
        if (counts) seen.look(first, end, bucket_of, lead_e);
        else ST_FOR(i, end - first) lead_e[first + i] = -1;
    }
}

}  // namespace ST_ISA
}  // namespace st
#endif
