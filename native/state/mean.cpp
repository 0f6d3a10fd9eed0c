#include "state/mean.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace st {

namespace {

#if defined(__x86_64__)
#define ST_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define ST_CLONES
#endif

constexpr u64 BLOCK = 256;              // small, so that what was read ahead is still in the first-level cache
constexpr u64 AHEAD = 512;              // elements read ahead: the hardware stops at every page (28 -> 45 GB/s)
constexpr u64 LINE = 16;                // elements of a cache line
constexpr u64 STREAMED = u64{1} << 20;  // elements from which a mean goes past the caches: nobody reads it at once

ST_CLONES void accumulate(f64 *__restrict sum, const f32 *__restrict x, f64 share, u64 n) {
    for (u64 i = 0; i < n; ++i) sum[i] += share * static_cast<f64>(x[i]);
}

// The first four terms of each sum in one pass, so that the four vectors are read side by side.
ST_CLONES void begin(f64 *__restrict sum, const f32 *const *x, const f64 *share, u64 n) {
    const f32 *__restrict a = x[0], *__restrict b = x[1], *__restrict c = x[2], *__restrict d = x[3];
    const f64 p = share[0], q = share[1], r = share[2], s = share[3];
    auto term = [&](u64 i) {
        sum[i] = ((p * static_cast<f64>(a[i]) + q * static_cast<f64>(b[i])) + r * static_cast<f64>(c[i])) +
                 s * static_cast<f64>(d[i]);
    };
    u64 line = 0;
    for (; line + LINE <= n; line += LINE) {
        for (const f32 *vector : {a, b, c, d}) __builtin_prefetch(vector + line + AHEAD);
        for (u64 i = line; i < line + LINE; ++i) term(i);
    }
    for (; line < n; ++line) term(line);
}

ST_CLONES void begin_one(f64 *__restrict sum, const f32 *__restrict x, f64 share, u64 n) {
    for (u64 i = 0; i < n; ++i) sum[i] = share * static_cast<f64>(x[i]);
}

ST_CLONES void round_once(f32 *__restrict y, const f64 *__restrict sum, u64 n) {
    for (u64 i = 0; i < n; ++i) y[i] = static_cast<f32>(sum[i]);
}

// to := from without reading `to` into the caches first.
void stream(f32 *to, const f32 *from, u64 n) {
    u64 i = 0;
#if defined(__x86_64__)
    for (; i + 4 <= n; i += 4) _mm_stream_ps(to + i, _mm_load_ps(from + i));
#endif
    std::memcpy(to + i, from + i, (n - i) * sizeof(f32));
}

}  // namespace

void weighted_mean(const std::vector<const f32 *> &vectors, const std::vector<f64> &shares, u64 count, f32 *to) {
    if (vectors.size() == 1) {
        std::memcpy(to, vectors[0], count * sizeof(f32));
        return;
    }
    const bool streamed = count >= STREAMED;
    const u64 first = vectors.size() >= 4 ? 4 : 1;
    alignas(64) f64 sum[BLOCK];
    alignas(64) f32 rounded[BLOCK];
    for (u64 at = 0; at < count; at += BLOCK) {
        u64 n = std::min(BLOCK, count - at);
        if (first == 4) {
            const f32 *four[] = {vectors[0] + at, vectors[1] + at, vectors[2] + at, vectors[3] + at};
            begin(sum, four, shares.data(), n);
        } else {
            begin_one(sum, vectors[0] + at, shares[0], n);
        }
        for (u64 w = first; w < vectors.size(); ++w) accumulate(sum, vectors[w] + at, shares[w], n);
        round_once(streamed ? rounded : to + at, sum, n);
        if (streamed) stream(to + at, rounded, n);
    }
#if defined(__x86_64__)
    if (streamed) _mm_sfence();   // before the round is announced as finished
#endif
}

}  // namespace st
