#include "state/average.h"

#include <algorithm>
#include <cstring>

#include "base/moments.h"

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

constexpr f64 LN_2 = 0.69314718055994531;
constexpr f64 LEAST_MOVED = 8;          // values: in a round of one row that row would be most of it
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

// All workers' shares of a round as one.
ColumnMoments gathered(const std::vector<Contribution> &workers, u64 offset, u64 column) {
    ColumnMoments all{};
    for (const Contribution &worker : workers) {
        const ColumnMoments &share = reinterpret_cast<const ColumnMoments *>(worker.vector + offset)[column];
        f64 raw_count = all.count;
        merge_moments(share.count, share.raw_mean, share.raw_squares, raw_count, all.raw_mean, all.raw_squares);
        merge_moments(share.count, share.mean, share.squares, all.count, all.mean, all.squares);
        all.outside += share.outside;
        all.least = nearer(share.least, all.least);
        all.clipped += share.clipped;
    }
    return all;
}

// A column's state after a round. Where most of a round lies beyond the reach the column has moved, and the values
// count as they came; fewer than that is what the reach is for. Where they outnumber all that was seen before, that was
// wrong.
void fold_round(ColumnMoments &column, const ColumnMoments &round) {
    if (round.count == 0) return;
    if (column.half_life > 0) {
        f64 kept = power(1 - LN_2 / column.half_life, static_cast<i64>(round.count));
        column.count *= kept;
        column.squares *= kept;
        column.outside *= kept;
    }
    bool most = 2 * round.outside > round.count;
    bool moved = most && round.outside >= LEAST_MOVED;
    if (most && round.outside > column.count) {
        moved = true;
        column.count = column.mean = column.squares = 0;
    }
    merge_moments(round.count, moved ? round.raw_mean : round.mean, moved ? round.raw_squares : round.squares,
                  column.count, column.mean, column.squares);
    if (!moved) {
        column.outside += round.outside;
        column.least = nearer(round.least, column.least);
    }
    column.clipped += round.clipped;
}

void fold_moments(const StateBlock &block, const u8 *start, const std::vector<Contribution> &workers,
                  const u8 *first_round, u8 *mean) {
    ColumnMoments *to = reinterpret_cast<ColumnMoments *>(mean + block.offset);
    std::memcpy(to, first_round ? first_round : start + block.offset, block.count * sizeof(f64));
    for (u64 c = 0; c < block.count / moments_width; ++c) {
        ColumnMoments round = gathered(workers, block.offset, c);
        if (first_round) to[c].clipped += round.clipped;
        else fold_round(to[c], round);
    }
}

}  // namespace

f64 power(f64 base, i64 exponent) {
    f64 result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return result;
}

void average(const StateLayout &layout, const u8 *start, const std::vector<Contribution> &workers,
             const u8 *first_round, u8 *mean) {
    f64 weight_sum = 0;
    for (const Contribution &worker : workers) weight_sum += worker.weight_sum;
    for (const StateBlock &block : layout.blocks) {
        switch (block.rule) {
            case Rule::learned: average_learned(block.offset, block.count, start, workers, weight_sum, mean); break;
            case Rule::local: break;
            case Rule::moments:
                fold_moments(block, start, workers,
                             first_round ? first_round + (block.offset - layout.learned_bytes) : nullptr, mean);
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
