// How many samples a FLAC has whose head does not tell: its last frame says where it begins. RFC 9639, section 9.
#pragma once
#include <string_view>

#include "base/types.h"

namespace st::sounds {

inline u64 big(const char *p, u32 bytes) {
    u64 found = 0;
    for (u32 i = 0; i < bytes; ++i) found = found << 8 | static_cast<u8>(p[i]);
    return found;
}

// Of a frame, from what its head tells.
struct FlacFrame {
    bool numbers_samples;   // in a stream of blocks of different lengths; else frames are numbered
    u64 number, samples;
};

template <u32 bits>
u32 crc(std::string_view bytes, u32 polynomial) {
    u32 sum = 0;
    for (const char byte : bytes) {
        sum ^= u32{static_cast<u8>(byte)} << (bits - 8);
        for (int i = 0; i < 8; ++i) sum = sum << 1 ^ (sum >> (bits - 1) & 1 ? polynomial : 0);
        sum &= (u32{1} << bits) - 1;
    }
    return sum;
}

// Whether a frame's head stands at the beginning of these bytes, and what it tells.
inline bool flac_head(std::string_view bytes, FlacFrame &frame) {
    if (bytes.size() < 6 || big(bytes.data(), 2) >> 1 != 0xfff8 >> 1) return false;
    const auto byte = [&](u64 at) { return static_cast<u32>(static_cast<u8>(bytes[at])); };
    const u32 block = byte(2) >> 4, rate = byte(2) & 15, channels = byte(3) >> 4;
    if (block == 0 || rate == 15 || channels > 10 || byte(3) & 1) return false;
    u32 more = 0;   // ones that the number begins with: so many bytes it has, as in UTF-8
    while (more < 8 && byte(4) & 0x80 >> more) ++more;
    if (more == 1 || more == 8) return false;
    frame.number = byte(4) & (more ? 0x7fu >> more : 0x7fu);
    const u64 at = 4 + (more ? more : 1);
    const u32 of_block = block == 6 ? 1 : block == 7 ? 2 : 0, of_rate = rate == 12 ? 1 : rate >= 13 ? 2 : 0;
    const u64 size = at + of_block + of_rate;
    if (bytes.size() <= size) return false;
    for (u64 i = 5; i < at; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return false;
        frame.number = frame.number << 6 | (byte(i) & 0x3f);
    }
    frame.numbers_samples = byte(1) & 1;
    frame.samples = of_block     ? big(bytes.data() + at, of_block) + 1
                    : block == 1 ? 192
                    : block < 6  ? u64{576} << (block - 2)
                                 : u64{256} << (block - 8);
    return crc<8>(bytes.substr(0, size), 0x07) == byte(size);
}

// Of these frames; `block`: samples of each but the last, where all have as many. 0: the last one is not whole. In time
// linear in their bytes.
inline u64 flac_samples(std::string_view frames, u64 block) {
    constexpr u32 MOST_HEADS = 16;   // that are looked at; by chance there is one in 2^23 bytes
    if (frames.size() < 8) return 0;
    const u64 end = frames.size() - 2;
    const u64 told = big(frames.data() + end, 2);
    FlacFrame frame;
    u32 heads = 0;
    for (u64 at = end; at-- > 0 && heads < MOST_HEADS;) {
        if (static_cast<u8>(frames[at]) != 0xff || !flac_head(frames.substr(at, end - at), frame)) continue;
        ++heads;
        if (crc<16>(frames.substr(at, end - at), 0x8005) != told) continue;
        return ((frame.numbers_samples ? frame.number : frame.number * block) + frame.samples) & 0xfffffffff;
    }
    return 0;
}

}  // namespace st::sounds
