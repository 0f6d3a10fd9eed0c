// Sums over a row with one order on every target: partial j takes elements j, j + 32, ...; then halves are added until
// one is left. Used inside ST_ROWS; every lane gets the result. Each term is asked for once, so it may leave something
// at its own place for what comes behind the sum.
#pragma once
#include "base/lane.h"

namespace st {
inline namespace ST_ISA {

#if ST_CUDA
template <class T>
ST_INLINE T halves_of(i64, T part) {
    for (int width = lanes / 2; width > 0; width /= 2) part += __shfl_down_sync(0xffffffffu, part, width);
    return __shfl_sync(0xffffffffu, part, 0);
}
#else
template <class T>
ST_INLINE T halves_of(i64 n, T *part) {
    i64 used = lanes;
    while (used / 2 >= n && used > 1) used /= 2;   // the rest is 0: adding it changes no bit
    for (i64 width = used / 2; width > 0; width /= 2)
        for (i64 lane = 0; lane < width; ++lane) part[lane] += part[lane + width];
    return part[0];
}
#endif

template <class T, class Term>
ST_INLINE T sum(i64 n, Term term) {
#if ST_CUDA
    T part = T(0);
    for (i64 i = threadIdx.x; i < n; i += lanes) part += term(i);
    return halves_of(n, part);
#else
    T part[lanes] = {};
    i64 whole = n / lanes * lanes;
    for (i64 i = 0; i < whole; i += lanes)
        _Pragma("GCC ivdep") for (i64 lane = 0; lane < lanes; ++lane) part[lane] += term(i + lane);
    for (i64 i = whole; i < n; ++i) part[i - whole] += term(i);
    return halves_of(n, part);
#endif
}

// Several at once, each as sum() has it: terms(i, its) puts the i-th term of each into `its`.
template <class T, int count, class Terms>
ST_INLINE void sums(i64 n, T (&totals)[count], Terms terms) {
#if ST_CUDA
    T part[count] = {};
    for (i64 i = threadIdx.x; i < n; i += lanes) {
        T its[count];
        terms(i, its);
        ST_UNROLL for (int k = 0; k < count; ++k) part[k] += its[k];
    }
#else
    T part[count][lanes] = {};
    auto add = [&](i64 i, i64 lane) ST_LAMBDA {
        T its[count];
        terms(i, its);
        ST_UNROLL for (int k = 0; k < count; ++k) part[k][lane] += its[k];
    };
    i64 whole = n / lanes * lanes;
    for (i64 i = 0; i < whole; i += lanes)
        _Pragma("GCC ivdep") for (i64 lane = 0; lane < lanes; ++lane) add(i + lane, lane);
    for (i64 i = whole; i < n; ++i) add(i, i - whole);
#endif
    for (int k = 0; k < count; ++k) totals[k] = halves_of(n, part[k]);
}

// The largest term; `lowest` where n is 0. Order does not matter, NaN terms are passed over.
template <class T, class Term>
ST_INLINE T maximum(i64 n, T lowest, Term term) {
#if ST_CUDA
    T best = lowest;
    for (i64 i = threadIdx.x; i < n; i += lanes) best = larger(term(i), best);
    for (int width = lanes / 2; width > 0; width /= 2) best = larger(__shfl_down_sync(0xffffffffu, best, width), best);
    return __shfl_sync(0xffffffffu, best, 0);
#else
    T part[lanes];
    for (i64 lane = 0; lane < lanes; ++lane) part[lane] = lowest;
    i64 whole = n / lanes * lanes;
    for (i64 i = 0; i < whole; i += lanes)
        _Pragma("GCC ivdep") for (i64 lane = 0; lane < lanes; ++lane) part[lane] = larger(term(i + lane), part[lane]);
    for (i64 i = whole; i < n; ++i) part[i - whole] = larger(term(i), part[i - whole]);
    T best = lowest;
    for (i64 lane = 0; lane < smaller(n, lanes); ++lane) best = larger(part[lane], best);
    return best;
#endif
}

}  // namespace ST_ISA
}  // namespace st
