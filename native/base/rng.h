// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011): numbers are a
// function of key and counter, so there is no state to keep or lose. Checked against the paper's known answers.
#pragma once
#include "base/lane.h"

namespace st {
inline namespace ST_ISA {

struct Philox {
    u32 word[4];
};

ST_INLINE Philox philox(u64 key, u64 counter_low, u64 counter_high) {
    u32 c0 = u32(counter_low), c1 = u32(counter_low >> 32), c2 = u32(counter_high), c3 = u32(counter_high >> 32);
    u32 k0 = u32(key), k1 = u32(key >> 32);
    for (int turn = 0; turn < 10; ++turn) {
        u64 p0 = u64(0xD2511F53u) * c0, p1 = u64(0xCD9E8D57u) * c2;
        c0 = u32(p1 >> 32) ^ c1 ^ k0;
        c2 = u32(p0 >> 32) ^ c3 ^ k1;
        c1 = u32(p1);
        c3 = u32(p0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}

// In [0, 1), 24 bits.
ST_INLINE f32 uniform(u32 word) { return f32(word >> 8) * 5.9604644775390625e-8f; }

}  // namespace ST_ISA
}  // namespace st
