// MurmurHash3_x86_32 (Austin Appleby, public domain), the stated hash of category text: the same on every machine and
// build.
#pragma once
#include <cstring>

#include "base/types.h"

namespace st {

inline u32 murmur3_mix(u32 k) {
    k *= 0xcc9e2d51u;
    k = (k << 15) | (k >> 17);
    return k * 0x1b873593u;
}

inline u32 murmur3(const void *bytes, u64 size, u32 seed) {
    const u8 *p = static_cast<const u8 *>(bytes);
    u32 h = seed;
    for (u64 n = size / 4; n; --n, p += 4) {
        u32 k;
        std::memcpy(&k, p, 4);
        h ^= murmur3_mix(k);
        h = ((h << 13) | (h >> 19)) * 5 + 0xe6546b64u;
    }
    u32 tail = 0;
    switch (size & 3) {
        case 3: tail ^= u32{p[2]} << 16; [[fallthrough]];
        case 2: tail ^= u32{p[1]} << 8; [[fallthrough]];
        case 1: h ^= murmur3_mix(tail ^ p[0]);
    }
    h ^= static_cast<u32>(size);
    h = (h ^ (h >> 16)) * 0x85ebca6bu;
    h = (h ^ (h >> 13)) * 0xc2b2ae35u;
    return h ^ (h >> 16);
}

}  // namespace st
