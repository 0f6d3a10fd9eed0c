#include "memory/average.h"

#include <algorithm>
#include <cstring>

namespace st {

namespace {

#if defined(__x86_64__)
#define ST_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define ST_CLONES
#endif

constexpr u64 BLOCK = 2048;   // float64 partial sums of one block stay in the first-level cache (16 KiB)

ST_CLONES void accumulate(f64 *__restrict sum, const f32 *__restrict x, f64 share, u64 n) {
    for (u64 i = 0; i < n; ++i) sum[i] += share * static_cast<f64>(x[i]);
}

ST_CLONES void begin(f64 *__restrict sum, const f32 *__restrict x, f64 share, u64 n) {
    for (u64 i = 0; i < n; ++i) sum[i] = share * static_cast<f64>(x[i]);
}

ST_CLONES void round_once(f32 *__restrict y, const f64 *__restrict sum, u64 n) {
    for (u64 i = 0; i < n; ++i) y[i] = static_cast<f32>(sum[i]);
}

void average_learned(u64 offset, u64 count, const u8 *start, const std::vector<Contribution> &workers, f64 weight_sum,
                     u8 *mean) {
    std::vector<Contribution> active;
    for (const Contribution &worker : workers)
        if (worker.weight_sum > 0) active.push_back(worker);
    if (active.size() <= 1) {
        std::memcpy(mean + offset, (active.empty() ? start : active[0].vector) + offset, count * sizeof(f32));
        return;
    }
    alignas(64) f64 sum[BLOCK];
    for (u64 at = 0; at < count; at += BLOCK) {
        u64 n = std::min(BLOCK, count - at), from = offset + at * sizeof(f32);
        begin(sum, reinterpret_cast<const f32 *>(active[0].vector + from), active[0].weight_sum / weight_sum, n);
        for (u64 w = 1; w < active.size(); ++w)
            accumulate(sum, reinterpret_cast<const f32 *>(active[w].vector + from), active[w].weight_sum / weight_sum,
                       n);
        round_once(reinterpret_cast<f32 *>(mean + from), sum, n);
    }
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
