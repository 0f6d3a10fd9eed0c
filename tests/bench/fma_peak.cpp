// What one core can do: independent chains of fused multiply-adds on whole vectors, all in registers.
#include "base/vector.h"

namespace {
constexpr int chains = 12;   // more than latency x units of any processor so far asks for; AVX2 has 16 registers
}

// Gives the floating-point operations of so many turns.
extern "C" double fma_turns(long turns) {
    using namespace st;
    Vector sum[chains], x = broadcast(0.5f), y = broadcast(1.0f);
    asm volatile("" : "+x"(x), "+x"(y));   // or the compiler knows what comes out
    for (int i = 0; i < chains; ++i) sum[i] = broadcast(static_cast<f32>(i));
    for (long turn = 0; turn < turns; ++turn)
        ST_UNROLL for (int i = 0; i < chains; ++i) sum[i] = fma(sum[i], x, y);
    for (int i = 0; i < chains; ++i) asm volatile("" : : "x"(sum[i]));
    return 2.0 * chains * vector_lanes * static_cast<double>(turns);
}
