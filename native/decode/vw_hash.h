// Vowpal Wabbit's hash of names (--hash strings): a name of digits is a number, any other one is hashed by
// MurmurHash3_x86_32, both from a seed on, which of a feature is the hash of its namespace.
#pragma once
#include "decode/murmur3.h"
#include "decode/number_text.h"

namespace st {

inline u64 vw_hash(const char *p, const char *end, u32 seed) {
    u64 number = 0;
    for (const char *at = p; at < end; ++at) {
        if (!number_text::is_digit(*at)) return murmur3(p, static_cast<u64>(end - p), seed);
        number = 10 * number + static_cast<u64>(*at - '0');
    }
    return number + seed;
}

}  // namespace st
