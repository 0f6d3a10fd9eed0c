// The hash of a category's text: of 32 bits, MurmurHash3_x86_32; of 64, the first half of MurmurHash3_x64_128.
#pragma once
#include <string_view>

#include "decode/murmur3.h"

namespace st {

struct TextHasher {
    u32 bits, seed;
    bool operator==(const TextHasher &) const = default;
    u64 operator()(std::string_view text) const {
        return bits == 64 ? murmur3_64(text.data(), text.size(), seed) : murmur3(text.data(), text.size(), seed);
    }
};

// One that the record's writer has taken.
struct TextHash {
    u64 value;
    TextHasher by;
};

}  // namespace st
