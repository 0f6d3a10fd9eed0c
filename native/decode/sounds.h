// Clips of sound as the bytes of a WAV or a FLAC: what can be said of them before any of it is decoded.
#pragma once
#include <string>
#include <string_view>

#include "decode/flac_frames.h"

namespace st {

struct SoundBounds {
    u64 rate;         // samples a second, of each channel
    u64 most_bytes;   // decoded
};

namespace sounds {

constexpr u64 BYTES_OF_A_SAMPLE = 4;   // decoded
constexpr u64 MOST_CHANNELS = 8;       // as many as FLAC can have

// What a clip's head tells.
struct Head {
    const char *format = "";   // "WAV"
    u64 channels = 0, rate = 0, count = 0;   // of samples, in each channel
};

inline u64 little(const char *p, u32 bytes) {
    u64 found = 0;
    for (u32 i = 0; i < bytes; ++i) found |= u64{static_cast<u8>(p[i])} << 8 * i;
    return found;
}

inline std::string head_problem(const Head &head, SoundBounds bounds) {
    const std::string a = std::string("a ") + head.format + " of ";
    if (head.channels < 1 || head.channels > MOST_CHANNELS) return a + std::to_string(head.channels) + " channels";
    if (head.rate != bounds.rate) return "one of " + std::to_string(head.rate);
    if (head.count && head.count <= bounds.most_bytes / BYTES_OF_A_SAMPLE / head.channels) return {};
    return a + std::to_string(head.count) + " samples in " + std::to_string(head.channels) + " channels";
}

// Whether a WAV of this format has samples of so many bits, each in bytes of its own: PCM, IEEE float, A-law, mu-law.
inline bool is_plain(u64 format, u64 bits) {
    if (format == 1) return bits == 8 || bits == 16 || bits == 24 || bits == 32;
    if (format == 3) return bits == 32 || bits == 64;
    return (format == 6 || format == 7) && bits == 8;
}

// Microsoft, IBM: Multimedia programming interface and data specifications 1.0, 1991 (WAV): chunks of a name, a length
// and as many bytes, to an even number of them. Who writes to a pipe cannot tell how many samples come: all there are.
// EBU Tech 3306 (RF64): the same; its first chunk tells how long the samples are where 32 bits do not.
inline std::string read_wav(std::string_view bytes, Head &head) {
    constexpr u64 EXTENSIBLE = 0xfffe;   // the format is the first two bytes of a number at 24
    constexpr u64 UNTOLD = 0xffffffff;
    const char *p = bytes.data() + 12, *const end = bytes.data() + bytes.size();
    constexpr u64 LENGTHS = 8 + 28;   // of RF64's first chunk: of the file, of the samples, how many they are
    const bool is_long = bytes.starts_with("RF64");
    if (is_long && (bytes.size() < 12 + LENGTHS || bytes.substr(12, 4) != "ds64")) return "a WAV without a head";
    u64 of_frame = 0;
    while (end - p >= 8) {
        const std::string_view name(p, 4);
        u64 size = little(p + 4, 4);
        p += 8;
        if (name == "data" && size == UNTOLD)
            size = is_long ? little(bytes.data() + 28, 8) : static_cast<u64>(end - p);
        if (size > static_cast<u64>(end - p)) break;
        if (name == "fmt ") {
            if (of_frame || size < 16) return "a WAV of two heads";
            const u64 told = little(p, 2), format = told == EXTENSIBLE && size >= 40 ? little(p + 24, 2) : told;
            const u64 bits = little(p + 14, 2);
            head.channels = little(p + 2, 2), head.rate = little(p + 4, 4), of_frame = little(p + 12, 2);
            if (!is_plain(format, bits)) return "a WAV of format " + std::to_string(format);
            if (!of_frame || of_frame != head.channels * bits / 8)
                return "a WAV of " + std::to_string(head.channels) + " channels";
        }
        if (name == "data") {
            if (!of_frame) return "a WAV without a head";
            head.count = size / of_frame;
            return {};
        }
        p += size + (size & 1 && size < static_cast<u64>(end - p));
    }
    return "a WAV that is cut short";
}

// RFC 9639 (FLAC): blocks of metadata, the first of which tells the stream's form, then frames. Who writes to a pipe
// cannot tell how many samples come: those up to the end of the last frame.
inline std::string read_flac(std::string_view bytes, Head &head) {
    const char *p = bytes.data() + 4, *const end = bytes.data() + bytes.size();
    u64 block = 0;
    for (bool first = true, last = false; !last; first = false) {
        if (end - p < 4) return "a FLAC that is cut short";
        const u64 kind = big(p, 1), size = big(p + 1, 3);
        last = kind >> 7;
        if (first != ((kind & 0x7f) == 0) || (first && size != 34)) return "a FLAC without a head";
        if (size >= static_cast<u64>(end - p) - 4) return "a FLAC that is cut short";   // a frame follows
        if (first) {
            const u64 form = big(p + 14, 8);   // 20 bits of rate, 3 of channels, 5 of bits, 36 of samples
            head.rate = form >> 44, head.channels = (form >> 41 & 7) + 1, head.count = form & 0xfffffffff;
            block = big(p + 6, 2);
        }
        p += 4 + size;
    }
    if (!head.count) head.count = flac_samples({p, static_cast<u64>(end - p)}, block);
    return {};
}

// What is wrong with what can be seen of a clip; "": nothing, and `head` is what it tells.
inline std::string read_head(std::string_view bytes, Head &head) {
    const bool is_riff = bytes.starts_with("RIFF") || bytes.starts_with("RF64");
    const bool is_wav = is_riff && bytes.substr(4).size() >= 8 && bytes.substr(8, 4) == "WAVE";
    if (!is_wav && !bytes.starts_with("fLaC")) return "neither";
    head.format = is_wav ? "WAV" : "FLAC";
    return is_wav ? read_wav(bytes, head) : read_flac(bytes, head);
}

}  // namespace sounds

// What bytes are in the place of a clip within such bounds; "": nothing is wrong with what can be seen. In time linear
// in their number; nothing is decoded.
inline std::string sound_problem(std::string_view bytes, SoundBounds bounds) {
    sounds::Head head;
    std::string problem = sounds::read_head(bytes, head);
    return problem.empty() ? sounds::head_problem(head, bounds) : problem;
}

}  // namespace st
