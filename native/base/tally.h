// A tally of logits: the weight by label of each distinct logit, from which AUC and average precision are exact. Its
// rows are three doubles: the head (count, 0, 0), then `count` entries (logit, weight of label 0, weight of label 1),
// ascending by the logit, then zeros.
//
// The count TALLY_FULL says that there are no entries, but marks: 2,048 bits, 32 in a double. The hash of a logit says
// whether it has a bit (one in eight has) and which. A tally has marks when it has seen more than TALLY_ENTRIES logits,
// and from its start when the tally of the window before had too many marks: logits that all differ then cost little.
// (Linear counting: Whang, Vander-Zanden and Taylor, 1990.)
#pragma once
#include "base/math.h"

namespace st {

constexpr i64 TALLY_ENTRIES = 4096, TALLY_FULL = TALLY_ENTRIES + 1, TALLY_WIDTH = 3;
constexpr i64 TALLY_MARKS = 64;       // doubles, of 32 bits each
constexpr i64 TALLY_FEW_MARKS = 520;  // TALLY_ENTRIES logits set 453 of the 2,048 bits, give or take 20

inline namespace ST_ISA {

struct TallyEntry {
    f64 z, weights[2];   // of label 0 and 1
};

// A snapshot may have any number there: what is no count is taken for full.
ST_INLINE i64 tally_count(const f64 *tally) {
    return *tally >= 0 && *tally <= TALLY_ENTRIES ? i64(*tally) : TALLY_FULL;
}

ST_INLINE TallyEntry *tally_entries(f64 *tally) { return reinterpret_cast<TallyEntry *>(tally + TALLY_WIDTH); }
ST_INLINE const TallyEntry *tally_entries(const f64 *tally) {
    return reinterpret_cast<const TallyEntry *>(tally + TALLY_WIDTH);
}

// The doubles that a tally of this count uses, its head among them.
ST_INLINE i64 tally_used(i64 count) {
    return TALLY_WIDTH + (count == TALLY_FULL ? TALLY_MARKS : TALLY_WIDTH * count);
}

// Sets the count in its place among other writes: a process may be killed between any two of them, and what is not 0
// must stay within what the count says is used, so that whoever goes on can clear it.
ST_INLINE void tally_set_count(f64 *tally, i64 count) {
#if ST_CUDA
    tally[0] = f64(count);
#else
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    tally[0] = f64(count);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
#endif
}

// Empties it: no entries, or no marks.
ST_INLINE void tally_clear(f64 *tally, i64 count) {
    const i64 used = tally_used(tally_count(tally));
    for (i64 i = 1; i < used; ++i) tally[i] = 0;
    tally_set_count(tally, count);
}

// The finalizer of MurmurHash3 (Appleby).
ST_INLINE u32 tally_hash(f32 z) {
    u32 hash = u32(bits_of(z));
    hash = (hash ^ hash >> 16) * u32{0x85ebca6b};
    hash = (hash ^ hash >> 13) * u32{0xc2b2ae35};
    return hash ^ hash >> 16;
}

ST_INLINE f64 *tally_marks(f64 *tally) { return tally + TALLY_WIDTH; }

ST_INLINE bool tally_marks_hash(u32 hash) { return hash % 8 == 0; }   // one in eight

ST_INLINE void tally_mark(f64 *marks, u32 hash) {
    f64 &its = marks[hash >> 26];
    its = f64(u32(its) | u32{1} << (hash >> 21 & 31));
}

ST_INLINE void tally_mark(f64 *marks, const TallyEntry *entries, i64 count) {
    for (i64 i = 0; i < count; ++i) {
        const u32 hash = tally_hash(f32(entries[i].z));
        if (tally_marks_hash(hash)) tally_mark(marks, hash);
    }
}

}  // namespace ST_ISA
}  // namespace st
