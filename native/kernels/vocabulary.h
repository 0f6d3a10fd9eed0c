// Ids of a vocabulary's values (base/vocabulary.h), and what a batch adds to a worker's share of one.
#pragma once
#include "base/kernel.h"

// index_r[r]: the id of row r's value, 0 where it has none.
ST_KERNEL void vocabulary_find(i64 rows, i64 columns, i64 column, i64 capacity, i64 words, const i64 *hashes_rc,
                               const i64 *base_w, i32 *index_r) {
    const KnownVocabulary known{base_w, capacity};
    ST_FOR(r, rows) {
        const i64 e = known.find(hashes_rc[r * columns + column]);
        index_r[r] = static_cast<i32>(e <= capacity ? e : 0);
    }
}
ST_EXPORT(vocabulary_find)

// Holds one in twice as many values of those that the base does not know, until there is room for one more.
ST_INLINE void vocabulary_thin(Vocabulary share, KnownVocabulary known) {
    VocabularyHead &head = share.head();
    while (head.used == share.entries() && head.shift < 63) {
        ++head.shift;
        const i64 before = head.used;
        head.used = 0;
        for (i64 place = 0; place < share.places(); ++place) share.index()[place] = 0;
        for (i64 e = 1; e <= before; ++e) {
            const VocabularyEntry its = share.entry(e);
            share.entry(e) = {0, 0, 0};
            if (vocabulary_holds(its.hash, known.head().rounds, head.shift) || known.find(its.hash))
                share.put(++head.used, its.hash, its.count, its.newest_ms);
        }
    }
}

// The rows of weight above 0 of a batch. Where there is no room for all values of a round, those that the base knows
// are held, and of the others those whose hash says so: what is held does not depend on the workers' number.
ST_KERNEL void vocabulary_add(i64 rows, i64 columns, i64 column, i64 t_columns, i64 t_column, i64 capacity, i64 words,
                              const i64 *hashes_rc, const i64 *times_rt, const f32 *weight_r, const i64 *base_w,
                              i64 *share_w) {
    const KnownVocabulary known{base_w, capacity};
    const Vocabulary share{share_w, capacity};
    VocabularyHead &head = share.head();
    ST_ROWS(once, 1) {
        ST_FIRST_LANE {
            for (i64 r = 0; r < rows; ++r) {
                if (!(weight_r[r] > 0)) continue;
                const i64 hash = hashes_rc[r * columns + column];
                const i64 time = times_rt ? times_rt[r * t_columns + t_column] : 0;
                if (const i64 e = share.find(hash)) {
                    ++share.entry(e).count;
                    share.entry(e).newest_ms = larger(share.entry(e).newest_ms, time);
                    continue;
                }
                const bool is_known = known.find(hash) > 0;
                if (!is_known && !vocabulary_holds(hash, known.head().rounds, head.shift)) continue;
                if (head.used >= share.entries()) vocabulary_thin(share, known);
                if (head.used < share.entries() &&
                    (is_known || vocabulary_holds(hash, known.head().rounds, head.shift)))
                    share.put(++head.used, hash, 1, larger(time, i64(0)));
            }
        }
    }
}
ST_EXPORT(vocabulary_add)
