// A picture, as the bytes of a JPEG or a PNG or as those in base64: its points in a block of bytes.
#pragma once
#include "decode/media_kind.h"
#include "decode/pictures.h"

namespace st::kinds {

inline std::unique_ptr<Kind> image(const std::string &column, const Options &options) {
    const u64 most_bytes = static_cast<u64>(options.get<i64>("most_bytes"));
    const auto problem = [most_bytes](std::string_view raw) { return picture_problem(raw, most_bytes); };
    return std::make_unique<MediaKind>(column, options, "JPEG or PNG", problem);
}

}  // namespace st::kinds
