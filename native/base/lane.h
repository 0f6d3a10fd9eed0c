// How a kernel body is written once for the host and for NVRTC.
//
//   ST_KERNEL void f(i64 n, ...)  a kernel; arguments are values (plan constants) or pointers
//   ST_FOR(i, n) { ... }          n independent turns: a grid stride on CUDA, a vector loop on the host
//   ST_ROWS(r, rows) { ... }      one block of 32 threads a row on CUDA, one turn a row on the host; inside it
//   ST_LANES(i, n) { ... }  n independent turns shared by the row's lanes
//   ST_FIRST_LANE { ... }   once a row, after a sum
//   ST_UNROLL for (...)     a loop of a constant number of turns, written out
//   ST_MEMBER               of a struct that kernels use
//   ST_LAMBDA               behind the arguments of a function within one, which becomes part of it
//
// Each unit is built once per instruction set; all names below lie in a namespace of their own per instruction set, so
// that the linker never merges a function of one with that of another.
#pragma once
#include "base/types.h"

#ifndef ST_ISA
#define ST_ISA isa_base
#endif

#if defined(__CUDACC_RTC__)
#define ST_CUDA 1
#define ST_KERNEL __global__
#define ST_INLINE static __device__ __forceinline__
#define ST_MEMBER __device__ __forceinline__
#define ST_LAMBDA
#define ST_FOR(i, n)                                                                  \
    for (st::i64 i = st::i64(blockIdx.x) * blockDim.x + threadIdx.x; i < st::i64(n); \
         i += st::i64(gridDim.x) * blockDim.x)
#define ST_ROWS(r, rows) for (st::i64 r = blockIdx.x; r < st::i64(rows); r += gridDim.x)
#define ST_LANES(i, n) for (st::i64 i = threadIdx.x; i < st::i64(n); i += 32)
#define ST_FIRST_LANE if (threadIdx.x == 0)
#define ST_UNROLL _Pragma("unroll")
#else
#define ST_CUDA 0
#define ST_KERNEL static
#define ST_INLINE static inline __attribute__((always_inline))
#define ST_MEMBER inline __attribute__((always_inline))
#define ST_LAMBDA __attribute__((always_inline))
#define ST_FOR(i, n) _Pragma("GCC ivdep") for (st::i64 i = 0; i < st::i64(n); ++i)
#define ST_ROWS(r, rows) for (st::i64 r = 0; r < st::i64(rows); ++r)
#define ST_LANES(i, n) ST_FOR(i, n)
#define ST_FIRST_LANE
#define ST_UNROLL _Pragma("GCC unroll 16")
#endif

namespace st {
inline namespace ST_ISA {

constexpr i64 lanes = 32;   // partial sums of st::sum, on every target

template <class T>
ST_INLINE T smaller(T a, T b) { return a < b ? a : b; }
template <class T>
ST_INLINE T larger(T a, T b) { return a > b ? a : b; }

}  // namespace ST_ISA
}  // namespace st
