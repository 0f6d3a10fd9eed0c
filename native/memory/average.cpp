#include "memory/average.h"

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

void average_learned(u64 offset, u64 count, const u8 *start, const std::vector<Contribution> &workers, f64 weight_sum,
                     u8 *mean) {
    std::vector<const f32 *> vectors;
    std::vector<f64> shares;
    for (const Contribution &worker : workers) {
        if (!(worker.weight_sum > 0)) continue;
        vectors.push_back(reinterpret_cast<const f32 *>(worker.vector + offset));
        shares.push_back(worker.weight_sum / weight_sum);
    }
    f32 *to = reinterpret_cast<f32 *>(mean + offset);
    if (vectors.size() <= 1) {
        std::memcpy(to, vectors.empty() ? start + offset : reinterpret_cast<const u8 *>(vectors[0]),
                    count * sizeof(f32));
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

template <class T, class Merge>
void fold(const StateBlock &block, const u8 *start, const std::vector<Contribution> &workers, u8 *mean, Merge merge) {
    T *to = reinterpret_cast<T *>(mean + block.offset);
    std::memcpy(to, start + block.offset, block.count * sizeof(T));
    for (const Contribution &worker : workers) {
        const T *share = reinterpret_cast<const T *>(worker.vector + block.offset);
        for (u64 i = 0; i < block.count; ++i) to[i] = merge(to[i], share[i]);
    }
}

void fold_moments(const StateBlock &block, const u8 *start, const std::vector<Contribution> &workers, u8 *mean) {
    f64 *to = reinterpret_cast<f64 *>(mean + block.offset);
    std::memcpy(to, start + block.offset, block.count * sizeof(f64));
    for (const Contribution &worker : workers)
        for (u64 i = 0; i + 2 < block.count; i += 3)
            merge_moments(to + i, reinterpret_cast<const f64 *>(worker.vector + block.offset) + i);
}

}  // namespace

void merge_moments(f64 *a, const f64 *b) {
    if (b[0] == 0) return;
    if (a[0] == 0) { a[0] = b[0]; a[1] = b[1]; a[2] = b[2]; return; }
    f64 count = a[0] + b[0], delta = b[1] - a[1];
    a[1] += delta * (b[0] / count);
    a[2] += b[2] + delta * delta * (a[0] * b[0] / count);
    a[0] = count;
}

void average(const StateLayout &layout, const u8 *start, const std::vector<Contribution> &workers,
             const u8 *fixed_moments, u8 *mean) {
    f64 weight_sum = 0;
    for (const Contribution &worker : workers) weight_sum += worker.weight_sum;
    for (const StateBlock &block : layout.blocks) {
        switch (block.rule) {
            case Rule::learned: average_learned(block.offset, block.count, start, workers, weight_sum, mean); break;
            case Rule::local: break;
            case Rule::moments:
                if (fixed_moments)
                    std::memcpy(mean + block.offset, fixed_moments + (block.offset - layout.learned_bytes),
                                block.count * sizeof(f64));
                else
                    fold_moments(block, start, workers, mean);
                break;
            case Rule::sum: fold<f64>(block, start, workers, mean, [](f64 a, f64 b) { return a + b; }); break;
            case Rule::count: fold<i64>(block, start, workers, mean, [](i64 a, i64 b) { return a + b; }); break;
            case Rule::highest:
                fold<i64>(block, start, workers, mean, [](i64 a, i64 b) { return std::max(a, b); });
                break;
        }
    }
}

}  // namespace st
