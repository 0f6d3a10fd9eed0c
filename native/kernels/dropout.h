// y = x / (1 - rate) or, at a share `rate` of the elements, 0 (Srivastava et al.: Dropout, 2014). Which, Philox(the
// step's key; place, stream) says, and so dx is the same of dy. y may be x. The places begin at `before`, a multiple of
// 64.
#pragma once
#include "base/kernel.h"

constexpr i64 drop_lanes = 16;                // counters whose words lie together: first all first ones, and so on
constexpr i64 drop_block = 4 * drop_lanes;

ST_INLINE f32 dropped(f32 x, u32 word, f32 rate) { return uniform(word) >= rate ? x / (1.0f - rate) : 0.0f; }

ST_KERNEL void dropout(i64 n, i64 before, const StepBlock *step, u64 stream, f32 rate, f32 *y, const f32 *x) {
    const u64 key = step->random;
#if ST_CUDA
    ST_FOR(i, n) {
        const i64 counter = (before + i) / drop_block * drop_lanes + i % drop_lanes;
        y[i] = dropped(x[i], philox(key, u64(counter), stream).word[i % drop_block / drop_lanes], rate);
    }
#else
    for (i64 first = 0; first < n; first += drop_block) {
        u32 words[drop_block];
        ST_FOR(lane, drop_lanes) {
            const Philox drawn = philox(key, u64((before + first) / 4 + lane), stream);
            for (int word = 0; word < 4; ++word) words[word * drop_lanes + lane] = drawn.word[word];
        }
        ST_FOR(at, smaller(drop_block, n - first)) y[first + at] = dropped(x[first + at], words[at], rate);
    }
#endif
}
ST_EXPORT(dropout)
