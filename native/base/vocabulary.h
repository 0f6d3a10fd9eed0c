// A vocabulary: which values, by their hash, have an id, and which are counted for one. Words, i64 [capacity + 1, 8]: a
// head; the entries of ids 1 to capacity, and behind them of as many candidates, free where their count is 0; an index
// of 4 * capacity int32, in which each entry that is not free lies by its hash, by open addressing. A worker's share is
// one too: of the round's values, entries from 1 on. An index may come from a snapshot: what is outside is no entry.
#pragma once
#include "base/lane.h"

namespace st {
inline namespace ST_ISA {

constexpr i64 vocabulary_width = 8;

struct VocabularyHead {
    i64 clock_ms;      // of event time; 0: none was seen
    i64 rounds, evicted;
    i64 used, shift;   // of a share: entries; only one in 2^shift of the values that were not known is held
    i64 admit, evict_ms, reserved;
};
static_assert(sizeof(VocabularyHead) == 8 * vocabulary_width);

struct VocabularyEntry {
    i64 hash, count, newest_ms;
};

ST_INLINE u64 vocabulary_mix(u64 x) {   // MurmurHash3's finalizer
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
    return x ^ (x >> 33);
}

// Whether a value that was not known is among one in 2^shift, others in each round.
ST_INLINE bool vocabulary_holds(i64 hash, i64 rounds, i64 shift) {
    return shift == 0 || vocabulary_mix(u64(hash) + vocabulary_mix(u64(rounds) + 1)) >> (64 - shift) == 0;
}

template <class T, class From>
struct AsConstAs { using type = T; };
template <class T, class From>
struct AsConstAs<T, const From> { using type = const T; };

template <class Word>
struct VocabularyOf {
    using Head = typename AsConstAs<VocabularyHead, Word>::type;
    using Entry = typename AsConstAs<VocabularyEntry, Word>::type;
    using Place = typename AsConstAs<i32, Word>::type;

    Word *words;
    i64 capacity;

    ST_MEMBER Head &head() const { return *reinterpret_cast<Head *>(words); }
    ST_MEMBER Entry &entry(i64 e) const { return reinterpret_cast<Entry *>(words + vocabulary_width)[e - 1]; }
    ST_MEMBER Place *index() const { return reinterpret_cast<Place *>(words + vocabulary_width + 6 * capacity); }
    ST_MEMBER i64 entries() const { return 2 * capacity; }
    ST_MEMBER i64 places() const { return 4 * capacity; }
    ST_MEMBER i64 behind(i64 place) const { return place + 1 == places() ? 0 : place + 1; }
    ST_MEMBER i64 home(i64 hash) const {
        return static_cast<i64>((vocabulary_mix(u64(hash)) >> 32) * u64(places()) >> 32);
    }
    ST_MEMBER i64 at(i64 place) const {   // an entry, or 0
        const i64 e = index()[place];
        return e > 0 && e <= entries() ? e : 0;
    }
    // Where the hash lies in the index, or would.
    ST_MEMBER i64 place_of(i64 hash) const {
        i64 place = home(hash);
        for (i64 tried = 1; tried < places(); ++tried, place = behind(place)) {
            const i64 e = at(place);
            if (e == 0 || entry(e).hash == hash) break;
        }
        return place;
    }
    ST_MEMBER i64 find(i64 hash) const {   // its entry, or 0
        const i64 e = at(place_of(hash));
        return e > 0 && entry(e).hash == hash ? e : 0;
    }
    // An entry that was free; room for it is the caller's care.
    ST_MEMBER void put(i64 e, i64 hash, i64 count, i64 newest_ms) const {
        index()[place_of(hash)] = static_cast<i32>(e);
        entry(e) = {hash, count, newest_ms};
    }
    // Frees an entry; those behind it in the index close up (Knuth, volume 3, algorithm 6.4R).
    ST_MEMBER void take(i64 e) const {
        i64 hole = place_of(entry(e).hash), place = behind(hole);
        for (i64 tried = 1; tried < places() && at(place) > 0; ++tried, place = behind(place)) {
            const i64 from = home(entry(at(place)).hash);
            const i64 away = place - from + (place < from ? places() : 0);
            if (away < place - hole + (place < hole ? places() : 0)) continue;
            index()[hole] = index()[place];
            hole = place;
        }
        index()[hole] = 0;
        entry(e) = {0, 0, 0};
    }
};

using Vocabulary = VocabularyOf<i64>;
using KnownVocabulary = VocabularyOf<const i64>;

}  // namespace ST_ISA
}  // namespace st
