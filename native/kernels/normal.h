// x[i] about normal from Philox(seed; 3 i, 3 i + 1, 3 i + 2, stream): the sum of 12 uniform numbers, which is exact, so
// that every machine has the same; never further than 6 deviations from the mean.
#pragma once
#include "base/kernel.h"

ST_KERNEL void normal_fill(i64 n, f32 *x, u64 seed, u64 stream, f32 mean, f32 deviation) {
    ST_FOR(i, n) {
        u32 total = 0;
        for (u64 part = 0; part < 3; ++part) {
            Philox four = philox(seed, u64(i) * 3 + part, stream);
            for (int j = 0; j < 4; ++j) total += four.word[j] >> 8;
        }
        x[i] = fma(f32(f64(total) * 0x1p-24 - 6.0), deviation, mean);
    }
}
ST_EXPORT(normal_fill)
