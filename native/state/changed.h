// Bytes into memory that holds nearly the same already: pages that are equal are not touched, and stay another's.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/types.h"

namespace st {

// Gives how many bytes were written: of whole pages of `to`, as far as they lie in it. No more once `most` are.
inline u64 copy_changed(u8 *to, const u8 *from, u64 size, u64 most) {
    const u64 page = static_cast<u64>(sysconf(_SC_PAGESIZE));
    u64 written = 0;
    for (u64 at = 0; at < size && written <= most;) {
        const u64 count = std::min(size - at, page - reinterpret_cast<u64>(to + at) % page);
        if (std::memcmp(to + at, from + at, count) != 0) {
            std::memcpy(to + at, from + at, count);
            written += count;
        }
        at += count;
    }
    return written;
}

}  // namespace st
