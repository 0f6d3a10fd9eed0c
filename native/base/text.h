// The text of base/ and kernels/ as it was built, for NVRTC; written by kernels/kernels.cmake. And what all of native/
// was; written by source_digest.cmake.
#pragma once

namespace st {

struct HeaderText {
    const char *path;   // relative to native/: kernels/relu.h
    const char *text;
};

extern const HeaderText header_texts[];
extern const unsigned header_text_count;
extern const char *const source_digest;   // SHA-256, hex

}  // namespace st
