// Pictures as the bytes of a JPEG or a PNG: what can be said of them before any of it is decoded.
#pragma once
#include <cstring>
#include <string>
#include <string_view>

#include "base/types.h"

namespace st {

namespace pictures {

// Of points, as a head tells it; 0 x 0 where there is no head.
struct Size {
    u64 height = 0, width = 0;
};

constexpr u64 BYTES_OF_A_POINT = 3;    // decoded
constexpr u32 MOST_SCANS = 64;         // of a progressive JPEG, each of which goes over all its points

inline u32 big16(const char *p) { return u32{static_cast<u8>(p[0])} << 8 | static_cast<u8>(p[1]); }
inline u32 big32(const char *p) { return big16(p) << 16 | big16(p + 2); }

inline std::string size_problem(Size size, u64 most_bytes) {
    if (size.width && size.height && size.width * size.height <= most_bytes / BYTES_OF_A_POINT) return {};
    return "a picture of " + std::to_string(size.width) + " x " + std::to_string(size.height);
}

// ISO/IEC 15948 (PNG): chunks of a length, a name, as many bytes and a checksum, from IHDR to IEND.
inline std::string png_problem(std::string_view bytes, u64 most_bytes, Size &head) {
    const char *p = bytes.data() + 8, *const end = bytes.data() + bytes.size();
    for (bool first = true; end - p >= 12; first = false) {
        const u64 size = big32(p);
        const std::string_view name(p + 4, 4);
        if (size > static_cast<u64>(end - p) - 12) break;
        if (first != (name == "IHDR") || (first && size != 13)) return "a PNG without a head";
        if (first) {
            head = {.height = big32(p + 12), .width = big32(p + 8)};
            if (std::string problem = size_problem(head, most_bytes); !problem.empty()) return problem;
        }
        if (name == "IEND") return {};
        p += 12 + size;
    }
    return "a PNG that is cut short";
}

// Behind a JPEG's scan: where the next marker stands; nullptr: nowhere.
inline const char *behind_scan(const char *p, const char *end) {
    while ((p = static_cast<const char *>(std::memchr(p, 0xff, static_cast<u64>(end - p)))) && end - p >= 2) {
        const u8 next = static_cast<u8>(p[1]);
        if (next != 0 && next != 0xff && (next < 0xd0 || next > 0xd7)) return p;
        p += next == 0xff ? 1 : 2;
    }
    return nullptr;
}

// ITU-T T.81 (JPEG), annex B: markers and their segments, from SOI to EOI.
inline std::string jpeg_problem(std::string_view bytes, u64 most_bytes, Size &head) {
    const char *p = bytes.data() + 2, *const end = bytes.data() + bytes.size();
    bool has_head = false;
    for (u32 scans = 0; p && end - p >= 2 && static_cast<u8>(*p) == 0xff;) {
        const u8 marker = static_cast<u8>(p[1]);
        if (marker == 0xff) {   // fill
            ++p;
            continue;
        }
        if (marker == 0xd9) return scans ? std::string() : "a JPEG without a picture";
        if (end - p < 4) break;
        const u64 size = big16(p + 2);
        if (size < 2 || size > static_cast<u64>(end - p) - 2) break;
        const bool is_head = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
        if (is_head) {
            if (has_head || size < 8) return "a JPEG of two heads";
            has_head = true;
            head = {.height = big16(p + 5), .width = big16(p + 7)};
            const u32 colours = static_cast<u8>(p[9]);
            if (colours != 1 && colours != 3) return "a JPEG of " + std::to_string(colours) + " colours";
            if (std::string problem = size_problem(head, most_bytes); !problem.empty()) return problem;
        }
        p += 2 + size;
        if (marker != 0xda) continue;
        if (!has_head || ++scans > MOST_SCANS) return has_head ? "a JPEG of too many scans" : "a JPEG without a head";
        p = behind_scan(p, end);
    }
    return "a JPEG that is cut short";
}

}  // namespace pictures

// What bytes are in the place of a picture of at most `most_bytes` when decoded, three of each point; "": nothing is
// wrong with what can be seen. In time linear in their number; nothing is decoded. `head`: the size it tells.
inline std::string picture_problem(std::string_view bytes, u64 most_bytes, pictures::Size &head) {
    if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return pictures::png_problem(bytes, most_bytes, head);
    if (bytes.starts_with("\xff\xd8\xff")) return pictures::jpeg_problem(bytes, most_bytes, head);
    return "neither";
}

inline std::string picture_problem(std::string_view bytes, u64 most_bytes) {
    pictures::Size head;
    return picture_problem(bytes, most_bytes, head);
}

}  // namespace st
