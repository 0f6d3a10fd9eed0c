// MurmurHash3 (Austin Appleby, public domain), the stated hash of category text: the same on every machine and build.
#pragma once
#include <bit>
#include <cstring>

#include "base/types.h"

namespace st {

inline u32 murmur3_mix(u32 k) { return std::rotl(k * 0xcc9e2d51u, 15) * 0x1b873593u; }

// Of a hash so far and four bytes more; and of one that has taken all bytes.
inline u32 murmur3_next(u32 h, u32 k) { return std::rotl(h ^ murmur3_mix(k), 13) * 5 + 0xe6546b64u; }
inline u32 murmur3_end(u32 h, u64 size) {
    h ^= static_cast<u32>(size);
    h = (h ^ (h >> 16)) * 0x85ebca6bu;
    h = (h ^ (h >> 13)) * 0xc2b2ae35u;
    return h ^ (h >> 16);
}

// MurmurHash3_x86_32.
inline u32 murmur3(const void *bytes, u64 size, u32 seed) {
    const u8 *p = static_cast<const u8 *>(bytes);
    u32 h = seed;
    for (u64 n = size / 4; n; --n, p += 4) {
        u32 k;
        std::memcpy(&k, p, 4);
        h = murmur3_next(h, k);
    }
    u32 tail = 0;
    switch (size & 3) {
        case 3: tail ^= u32{p[2]} << 16; [[fallthrough]];
        case 2: tail ^= u32{p[1]} << 8; [[fallthrough]];
        case 1: h ^= murmur3_mix(tail ^ p[0]);
    }
    return murmur3_end(h, size);
}

// The first 64 bits of MurmurHash3_x64_128.
inline u64 murmur3_64(const void *bytes, u64 size, u32 seed) {
    constexpr u64 C1 = 0x87c37b91114253d5u, C2 = 0x4cf5ad432745937fu;
    const auto first = [](u64 k) { return std::rotl(k * C1, 31) * C2; };
    const auto second = [](u64 k) { return std::rotl(k * C2, 33) * C1; };
    const auto finish = [](u64 h) {
        h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdu;
        h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53u;
        return h ^ (h >> 33);
    };
    const u8 *p = static_cast<const u8 *>(bytes);
    u64 h1 = seed, h2 = seed, k[2];
    for (u64 n = size / 16; n; --n, p += 16) {
        std::memcpy(k, p, 16);
        h1 = (std::rotl(h1 ^ first(k[0]), 27) + h2) * 5 + 0x52dce729u;
        h2 = (std::rotl(h2 ^ second(k[1]), 31) + h1) * 5 + 0x38495ab5u;
    }
    k[0] = k[1] = 0;
    if (size & 15) std::memcpy(k, p, size & 15);   // an empty text may have no address
    h1 ^= first(k[0]) ^ size;   // of zero bytes: zero
    h2 ^= second(k[1]) ^ size;
    h1 += h2;
    h2 += h1;
    return finish(h1) + finish(h2);
}

}  // namespace st
