// The record formats that the build found in decode/formats/.
#include <stdexcept>

#include "decode/decode_plan.h"
#include "decode_formats.inc"   // made by folder.cmake: the headers, and ST_FORMATS(X), an X(stem) each

namespace st {
namespace {

struct Entry {
    const char *name;
    std::unique_ptr<Decoder> (*decoder)(std::shared_ptr<const DecodePlan>);
    std::unique_ptr<RecordEncoder> (*encoder)();
};

#define ST_ENTRY(stem) {#stem, formats::stem, formats::stem##_encoder},
constexpr Entry ENTRIES[] = {ST_FORMATS(ST_ENTRY)};

const Entry &entry_of(const std::string &format) {
    for (const Entry &entry : ENTRIES)
        if (format == entry.name) return entry;
    throw std::invalid_argument("no record format is named " + format);
}

}  // namespace

std::vector<std::string> decoder_formats() {
    std::vector<std::string> names;
    for (const Entry &entry : ENTRIES) names.push_back(entry.name);
    return names;
}

std::unique_ptr<Decoder> make_decoder(const std::string &format, std::shared_ptr<const DecodePlan> plan) {
    return entry_of(format).decoder(std::move(plan));
}

std::unique_ptr<RecordEncoder> make_encoder(const std::string &format) { return entry_of(format).encoder(); }

}  // namespace st
