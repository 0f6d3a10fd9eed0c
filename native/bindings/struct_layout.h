// The fields of a native struct as numpy builds a dtype of them, each told by its name alone.
#pragma once
#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "base/types.h"
#include "bindings/bindings.h"

namespace st {

struct FieldLayout {
    const char *name;
    std::string format;
    std::size_t offset, bytes;
};

template <class T> FieldLayout field_layout(const char *name, std::size_t offset) {
    using Number = std::remove_all_extents_t<T>;
    static_assert(std::is_arithmetic_v<Number> && std::rank_v<T> <= 1);
    const char *kind = std::is_floating_point_v<Number> ? "f" : std::is_signed_v<Number> ? "i" : "u";
    const std::string many = std::rank_v<T> ? "(" + std::to_string(std::extent_v<T>) + ",)" : "";
    return {name, many + "<" + kind + std::to_string(sizeof(Number)), offset, sizeof(T)};
}

// In the file that knows the struct as `Struct`.
#define ST_FIELD(name) field_layout<decltype(Struct::name)>(#name, offsetof(Struct, name))

// What numpy.dtype() takes: {"names", "formats", "offsets", "itemsize"}, in the order in which the fields lie.
inline nb::dict struct_layout(std::vector<FieldLayout> fields, std::size_t bytes) {
    std::ranges::sort(fields, {}, &FieldLayout::offset);
    nb::list names, formats, offsets;
    std::size_t end = 0;
    for (const FieldLayout &field : fields) {
        if (field.offset != end)
            throw std::logic_error("a struct's fields: one is left out before " + std::string(field.name));
        end += field.bytes;
        names.append(field.name);
        formats.append(field.format);
        offsets.append(field.offset);
    }
    if (end != bytes) throw std::logic_error("a struct's fields: the last one is left out");
    nb::dict layout;
    layout["names"] = nb::tuple(names);
    layout["formats"] = nb::tuple(formats);
    layout["offsets"] = nb::tuple(offsets);
    layout["itemsize"] = bytes;
    return layout;
}

}  // namespace st
