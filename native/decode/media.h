// Cells that are files of their own, such as pictures: what each becomes, and who decodes them.
#pragma once
#include <string>
#include <string_view>

#include "base/types.h"

namespace st {

// What becomes of each: so many bytes of a row; the name says how.
struct MediaForm {
    std::string name;
    u64 bytes;
    bool operator==(const MediaForm &) const = default;
};

// Decodes, by any thread and by several at a time. Knows cells that their column has nothing against.
class MediaDecoder {
  public:
    virtual ~MediaDecoder() = default;
    // Each into its `form.bytes` of `rows`, one behind the other; good[i]: whether it could be.
    virtual void decode(const MediaForm &form, const std::string_view *encoded, u64 count, u8 *rows, u8 *good) = 0;
};

}  // namespace st
