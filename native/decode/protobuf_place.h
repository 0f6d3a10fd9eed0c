// Which message of a schema a record is, as a registry's serializer says it behind the schema's name.
#pragma once
#include <vector>

#include "decode/protobuf_bytes.h"

namespace st {

inline i64 unzigzag(u64 raw) { return static_cast<i64>(raw >> 1) ^ -static_cast<i64>(raw & 1); }

// Its place at p among the file's messages, from the outermost on; none is the first. What follows, or nullptr with
// bytes.problem().
inline const char *read_place(ProtoBytes &bytes, const char *p, const char *end, std::vector<i64> &place) {
    constexpr i64 DEEPEST = 32;
    const char *const start = p;
    u64 raw;
    if (!(p = bytes.varint(p, end, raw))) return nullptr;
    const i64 count = unzigzag(raw);
    if (count < 0 || count > DEEPEST)
        return bytes.broken(start, "expected the place of a message, got one of " + std::to_string(count) + " steps");
    for (i64 i = 0; i < count; ++i) {
        if (!(p = bytes.varint(p, end, raw))) return nullptr;
        place.push_back(unzigzag(raw));
    }
    if (place.empty()) place.push_back(0);
    return p;
}

}  // namespace st
