// Turns over a batch's rows in which a row sees what came before it: in ascending order on the host, on CUDA 32 rows at
// a time with what the rows before them in the same 32 add. The sums have one order on both. Used inside ST_ROWS.
#pragma once
#include "base/lane.h"
#include "base/logit_bins.h"

namespace st {
inline namespace ST_ISA {

struct Two {
    f64 first, second;
};

#if ST_CUDA
constexpr u32 every_lane = 0xffffffffu;

// What the lanes have read before, any of them may write behind it.
ST_INLINE void meet() { __syncwarp(); }

// What the lanes have each gathered in their turns, together; every lane gets it.
ST_INLINE f64 together(f64 part) {
    for (int width = lanes / 2; width > 0; width /= 2) part += __shfl_down_sync(every_lane, part, width);
    return __shfl_sync(every_lane, part, 0);
}
#else
ST_INLINE void meet() {}
ST_INLINE f64 together(f64 *part) {
    for (i64 width = lanes / 2; width > 0; width /= 2)
        for (i64 lane = 0; lane < width; ++lane) part[lane] += part[lane + width];
    return part[0];
}
#endif

// The sum over i < n of term(i, before), before = start + value(0) + ... + value(i - 1). The terms are added as sum()
// does it: partial j takes rows j, j + 32, ...
template <class Value, class Term>
ST_INLINE Two sum_in_order(i64 n, Two start, Value value, Term term) {
#if ST_CUDA
    Two part = {0, 0};
    for (i64 first = 0; first < n; first += lanes) {
        i64 i = first + threadIdx.x;
        Two mine = i < n ? value(i) : Two{0, 0}, before = start;
        for (i64 other = 0; other < lanes; ++other) {
            f64 a = __shfl_sync(every_lane, mine.first, other), b = __shfl_sync(every_lane, mine.second, other);
            if (other < threadIdx.x) before.first += a, before.second += b;
            start.first += a, start.second += b;
        }
        Two its = i < n ? term(i, before) : Two{0, 0};
        part.first += its.first, part.second += its.second;
    }
    return {together(part.first), together(part.second)};
#else
    f64 part_first[lanes] = {}, part_second[lanes] = {}, before_first[lanes], before_second[lanes];
    for (i64 first = 0; first < n; first += lanes) {
        i64 count = smaller(n - first, lanes);
        for (i64 lane = 0; lane < count; ++lane) {
            Two mine = value(first + lane);
            before_first[lane] = start.first, before_second[lane] = start.second;
            start.first += mine.first, start.second += mine.second;
        }
        ST_FOR(lane, count) {
            Two its = term(first + lane, {before_first[lane], before_second[lane]});
            part_first[lane] += its.first, part_second[lane] += its.second;
        }
    }
    return {together(part_first), together(part_second)};
#endif
}

// What a row adds at row `key` of a table: LOGIT_MOMENTS of them.
struct Moments {
    i32 key;
    f32 weight, x;
};

// table_km[key] += the moments of row i, in ascending i.
template <class MomentsOf>
ST_INLINE void add_moments_in_order(i64 n, f64 *table_km, MomentsOf moments_of) {
#if ST_CUDA
    for (i64 first = 0; first < n; first += lanes) {
        i64 i = first + threadIdx.x;
        Moments mine = i < n ? moments_of(i) : Moments{-1, 0, 0};
        f64 total[LOGIT_MOMENTS] = {}, weight = mine.weight, x = mine.x;
        bool last = mine.key >= 0;
        if (last)
            for (int c = 0; c < LOGIT_MOMENTS; ++c) total[c] = table_km[LOGIT_MOMENTS * mine.key + c];
        for (i64 other = 0; other < lanes; ++other) {
            bool same = __shfl_sync(every_lane, mine.key, other) == mine.key;
            f64 its = __shfl_sync(every_lane, weight, other), its_x = __shfl_sync(every_lane, x, other);
            for (int c = 0; c < LOGIT_MOMENTS; ++c, its *= its_x)
                if (same) total[c] += its;
            last = last && !(same && other > threadIdx.x);
        }
        if (last)
            for (int c = 0; c < LOGIT_MOMENTS; ++c) table_km[LOGIT_MOMENTS * mine.key + c] = total[c];
        meet();
    }
#else
    i32 key[lanes];
    f32 weights[lanes], xs[lanes];
    for (i64 first = 0; first < n; first += lanes) {   // places by vectors, then additions: 1.7x
        i64 count = smaller(n - first, lanes);
        ST_FOR(lane, count) {
            Moments its = moments_of(first + lane);
            key[lane] = its.key, weights[lane] = its.weight, xs[lane] = its.x;
        }
        for (i64 lane = 0; lane < count; ++lane) {
            f64 *to = table_km + LOGIT_MOMENTS * key[lane], its = weights[lane], x = xs[lane];
            to[0] += its;
            to[1] += its *= x;
            to[2] += its * x;
        }
    }
#endif
}

}  // namespace ST_ISA
}  // namespace st
