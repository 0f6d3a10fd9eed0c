// The record formats that the build found in decode/formats/.
#include <stdexcept>
#include <type_traits>

#include "decode/decode_plan.h"
#include "decode_formats.inc"   // made by folder.cmake: the headers, and ST_FORMATS(X), an X(stem) each

namespace st {
namespace {

struct FormatEntry {
    const char *name;
    std::unique_ptr<Decoder> (*decoder)(std::shared_ptr<const DecodePlan>, const Options &);
    std::unique_ptr<RecordEncoder> (*encoder)(const Options &);
};

// A format that has no options does not ask for them.
template <auto make, class... Given>
auto made(const Options &options, Given... given) {
    if constexpr (std::is_invocable_v<decltype(make), Given..., const Options &>) return make(given..., options);
    else return make(given...);
}

#define ST_FORMAT_ENTRY(stem)                                                        \
    {#stem,                                                                   \
     [](std::shared_ptr<const DecodePlan> plan, const Options &options) {     \
         return made<&formats::stem>(options, std::move(plan));               \
     },                                                                       \
     [](const Options &options) { return made<&formats::stem##_encoder>(options); }},
constexpr FormatEntry FORMATS[] = {ST_FORMATS(ST_FORMAT_ENTRY)};

const FormatEntry &entry_of(const std::string &format) {
    for (const FormatEntry &entry : FORMATS)
        if (format == entry.name) return entry;
    throw std::invalid_argument("no record format is named " + format);
}

}  // namespace

std::vector<std::string> decoder_formats() {
    std::vector<std::string> names;
    for (const FormatEntry &entry : FORMATS) names.push_back(entry.name);
    return names;
}

std::unique_ptr<Decoder> make_decoder(const RecordFormat &format, std::shared_ptr<const DecodePlan> plan) {
    return entry_of(format.name).decoder(std::move(plan), format.options);
}

std::unique_ptr<RecordEncoder> make_encoder(const RecordFormat &format) {
    return entry_of(format.name).encoder(format.options);
}

}  // namespace st
