// Adds a batch's rows of weight above 0 to this round's tally of logits (base/tally.h). -0 counts as 0; a logit that is
// NaN is left out, as its batch is rejected. On CUDA every tally is full: the figures are those of the bins.
#pragma once
#include "base/kernel.h"

#if !ST_CUDA
constexpr i64 tally_chunk = 512, tally_slots = 4 * tally_chunk;   // rows at a time, found by a table on the stack

// The distinct logits of rows [first, end) in the order in which they come; how many they are.
ST_INLINE i64 distinct_logits(i64 first, i64 end, const f32 *z_r, const f32 *label_r, const f32 *weight_r,
                              TallyEntry *found) {
    u16 slots[tally_slots] = {};   // 0: free
    i64 count = 0;
    for (i64 r = first; r < end; ++r) {
        const f32 z = z_r[r] == 0 ? 0.0f : z_r[r];
        if (!(weight_r[r] > 0) || z != z) continue;
        u64 slot = tally_hash(z) >> 21;
        while (slots[slot] && found[slots[slot] - 1].z != f64(z)) slot = (slot + 1) % tally_slots;
        if (!slots[slot]) {
            found[count] = {f64(z), {0, 0}};
            slots[slot] = static_cast<u16>(++count);
        }
        found[slots[slot] - 1].weights[label_r[r] >= 0.5f] += f64(weight_r[r]);
    }
    return count;
}

ST_INLINE void sort_by_logit(TallyEntry *entries, i64 count) {   // Shell sort, Ciura's gaps
    constexpr i64 gaps[] = {301, 132, 57, 23, 10, 4, 1};
    for (i64 gap : gaps)
        for (i64 i = gap; i < count; ++i) {
            const TallyEntry its = entries[i];
            i64 to = i;
            for (; to >= gap && entries[to - gap].z > its.z; to -= gap) entries[to] = entries[to - gap];
            entries[to] = its;
        }
}

// Adds the weights of logits that are there already; moves the others to the front, returns how many they are.
ST_INLINE i64 add_known(TallyEntry *entries, i64 count, TallyEntry *found, i64 found_count) {
    i64 others = 0;
    for (i64 i = 0; i < found_count; ++i) {
        i64 low = 0, high = count;
        while (low < high) {
            const i64 middle = (low + high) / 2;
            if (entries[middle].z < found[i].z) low = middle + 1;
            else high = middle;
        }
        if (low < count && entries[low].z == found[i].z) {
            entries[low].weights[0] += found[i].weights[0];
            entries[low].weights[1] += found[i].weights[1];
        } else {
            found[others++] = found[i];
        }
    }
    return others;
}

ST_INLINE void mark_logits(i64 first, i64 end, const f32 *z_r, const f32 *weight_r, f64 *marks) {
    u32 hashes[tally_chunk], marked[tally_chunk];   // three loops, of which the first is vector code
    i64 count = 0;
    for (i64 r = first; r < end; ++r) {
        const f32 z = z_r[r] + 0.0f;
        hashes[r - first] = weight_r[r] > 0 && z == z ? tally_hash(z) : 1;   // 1: not marked
    }
    for (i64 i = 0; i < end - first; ++i) {
        marked[count] = hashes[i];
        count += tally_marks_hash(hashes[i]);
    }
    for (i64 i = 0; i < count; ++i) tally_mark(marks, marked[i]);
}
#endif

ST_KERNEL void tally(i64 rows, const f32 *z_r, const f32 *label_r, const f32 *weight_r, const f64 *base_ec,
                     f64 *share_ec) {
#if ST_CUDA
    ST_ROWS(once, 1) ST_FIRST_LANE share_ec[0] = TALLY_FULL;
#else
    TallyEntry found[tally_chunk], *entries = tally_entries(share_ec);
    if (tally_count(base_ec) == TALLY_FULL && tally_count(share_ec) == 0) tally_set_count(share_ec, TALLY_FULL);
    for (i64 first = 0; first < rows; first += tally_chunk) {
        const i64 count = tally_count(share_ec), end = smaller(rows, first + tally_chunk);
        if (count == TALLY_FULL) {
            mark_logits(first, end, z_r, weight_r, tally_marks(share_ec));
            continue;
        }
        const i64 distinct = distinct_logits(first, end, z_r, label_r, weight_r, found);
        i64 others = add_known(entries, count, found, distinct), at = count;
        if (count + others > TALLY_ENTRIES) {   // those of this chunk that are known are marked as entries
            f64 marks[TALLY_MARKS] = {};
            tally_mark(marks, entries, count);
            tally_mark(marks, found, others);
            tally_clear(share_ec, TALLY_FULL);
            for (i64 i = 0; i < TALLY_MARKS; ++i) tally_marks(share_ec)[i] = marks[i];
            continue;
        }
        sort_by_logit(found, others);
        tally_set_count(share_ec, count + others);
        while (others > 0) {   // from the back, into the room behind
            const bool takes_known = at > 0 && entries[at - 1].z > found[others - 1].z;
            const i64 to = at + others - 1;
            entries[to] = takes_known ? entries[--at] : found[--others];
        }
    }
#endif
}
ST_EXPORT(tally)
