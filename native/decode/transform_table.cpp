// The transforms that the build found in decode/transforms/.
#include <stdexcept>

#include "decode_transforms.inc"   // made by folder.cmake: the headers, and ST_TRANSFORMS(X), an X(stem) each

namespace st {
namespace {

struct TransformEntry {
    const char *name;
    std::unique_ptr<Transform> (*make)(CellPlaces places, const Options &options);
};

#define ST_TRANSFORM_ENTRY(stem) {#stem, transforms::stem},
constexpr TransformEntry TRANSFORMS[] = {ST_TRANSFORMS(ST_TRANSFORM_ENTRY)};

}  // namespace

std::unique_ptr<Transform> make_transform(const std::string &name, CellPlaces places, const Options &options) {
    for (const TransformEntry &entry : TRANSFORMS)
        if (name == entry.name) return entry.make(std::move(places), options);
    throw std::invalid_argument("no transform is named " + name);
}

std::vector<std::string> cell_transforms() {
    std::vector<std::string> names;
    for (const TransformEntry &entry : TRANSFORMS) names.push_back(entry.name);
    return names;
}

}  // namespace st
