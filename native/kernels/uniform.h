// x[i] uniform in [low, high) from Philox(seed; i / 4, stream): what parameters start from, the same on every machine.
#pragma once
#include "base/kernel.h"

ST_KERNEL void uniform_fill(i64 n, f32 *x, u64 seed, u64 stream, f32 low, f32 high) {
    ST_FOR(i, n) x[i] = fma(uniform(philox(seed, u64(i) / 4, stream).word[i % 4]), high - low, low);
}
ST_EXPORT(uniform_fill)
