// While this lives, numbers below the smallest normal one (1.2e-38) count as 0 in this thread's arithmetic. Each costs
// a processor some hundred cycles, and a model that has learned its rows has many: gradients that tend to 0, moments of
// parameters that have none. All instruction sets of a processor give the same bits. Matrix products and optimizers
// alone run so: weights of rows may be as small.
#pragma once
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "base/types.h"

namespace st {

class SubnormalsAreZero {
  public:
    SubnormalsAreZero() : before_(mode()) { set_mode(before_ | FLUSH); }
    ~SubnormalsAreZero() { set_mode(before_); }
    SubnormalsAreZero(const SubnormalsAreZero &) = delete;
    SubnormalsAreZero &operator=(const SubnormalsAreZero &) = delete;

  private:
#if defined(__SSE__)
    static constexpr u64 FLUSH = 0x8040;   // results (FTZ), operands (DAZ): Intel's manual, volume 1, 10.2.3
    static u64 mode() { return _mm_getcsr(); }
    static void set_mode(u64 mode) { _mm_setcsr(static_cast<u32>(mode)); }
#elif defined(__aarch64__)
    static constexpr u64 FLUSH = u64{1} << 24;   // FPCR.FZ, operands and results
    static u64 mode() {
        u64 mode;
        asm volatile("mrs %0, fpcr" : "=r"(mode));
        return mode;
    }
    static void set_mode(u64 mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
    static constexpr u64 FLUSH = 0;
    static u64 mode() { return 0; }
    static void set_mode(u64) {}
#endif

    const u64 before_;
};

}  // namespace st
