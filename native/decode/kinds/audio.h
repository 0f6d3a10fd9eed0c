// A clip of sound, as the bytes of a WAV or a FLAC or as those in base64: numbers in a block of float32.
#pragma once
#include "decode/media_kind.h"
#include "decode/sounds.h"

namespace st::kinds {

inline std::unique_ptr<Kind> audio(const std::string &column, const Options &options) {
    const SoundBounds bounds{static_cast<u64>(options.get<i64>("rate")),
                             static_cast<u64>(options.get<i64>("most_bytes"))};
    const auto problem = [bounds](std::string_view raw) { return sound_problem(raw, bounds); };
    const std::string expected = "WAV or FLAC of " + std::to_string(bounds.rate) + " samples a second";
    return std::make_unique<MediaKind>(column, options, expected, problem);
}

}  // namespace st::kinds
