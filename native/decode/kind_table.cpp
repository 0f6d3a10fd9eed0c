// The kinds of columns that the build found in decode/kinds/.
#include <stdexcept>

#include "decode_kinds.inc"   // made by folder.cmake: the headers, and ST_KINDS(X), an X(stem) each

namespace st {
namespace {

struct KindEntry {
    const char *name;
    std::unique_ptr<Kind> (*make)(const std::string &column, const Options &options);
};

#define ST_KIND_ENTRY(stem) {#stem, kinds::stem},
constexpr KindEntry KINDS[] = {ST_KINDS(ST_KIND_ENTRY)};

}  // namespace

std::unique_ptr<Kind> make_kind(const std::string &kind, const std::string &column, const Options &options) {
    for (const KindEntry &entry : KINDS)
        if (kind == entry.name) return entry.make(column, options);
    throw std::invalid_argument("no kind of column is named " + kind);
}

std::vector<std::string> column_kinds() {
    std::vector<std::string> names;
    for (const KindEntry &entry : KINDS) names.push_back(entry.name);
    return names;
}

}  // namespace st
