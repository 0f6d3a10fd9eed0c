// The kernel registry as Python sees it, and the host path to a single kernel (tests, initialisation).
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "base/fail.h"
#include "base/isa.h"
#include "base/text.h"
#include "base/thunk.h"
#include "bindings/bindings.h"

namespace st {
namespace {

nb::list kernel_list() {
    nb::list kernels;
    for (u32 i = 0; i < kernel_count(); ++i) {
        const KernelEntry &entry = kernel_at(i);
        std::vector<std::string> arguments(entry.arguments, entry.arguments + entry.argument_count);
        kernels.append(nb::make_tuple(entry.name, entry.types, entry.isa, arguments, entry.host_only));
    }
    return kernels;
}

nb::dict texts() {
    nb::dict by_path;
    for (unsigned i = 0; i < header_text_count; ++i) by_path[header_texts[i].path] = header_texts[i].text;
    return by_path;
}

const KernelEntry &kernel_or_mistake(const std::string &name, const std::string &types, const std::string &isa) {
    const KernelEntry *entry = find_kernel(name.c_str(), types.c_str(), isa.c_str());
    if (!entry) mistake("kernel " + name + "<" + types + ">", "one of the registry", "none for " + isa);
    return *entry;
}

nb::dlpack::dtype dtype_of(const std::string &text) {
    if (text == "f32") return nb::dtype<f32>();
    if (text == "f64") return nb::dtype<f64>();
    if (text == "i32") return nb::dtype<i32>();
    if (text == "i64") return nb::dtype<i64>();
    if (text == "u64") return nb::dtype<u64>();
    return nb::dtype<u8>();
}

using Addresses = std::vector<std::vector<u64>>;

// The argument as the eight bytes a thunk reads; arrays by address after their dtype was compared, lists of them by the
// addresses that are kept in `tables`.
u64 argument_bits(const std::string &where, const std::string &type, nb::handle value, Addresses &tables) {
    u64 bits = 0;
    if (type.size() > 2 && type.substr(type.size() - 2) == "**" && nb::isinstance<nb::list>(value)) {
        std::vector<u64> table;
        for (nb::handle each : nb::borrow<nb::list>(value))
            table.push_back(argument_bits(where, type.substr(0, type.size() - 1), each, tables));
        tables.push_back(std::move(table));
        return reinterpret_cast<u64>(tables.back().data());
    }
    if (type.back() == '*') {
        if (value.is_none()) return 0;
        if (nb::isinstance<StepBlock>(value)) {
            if (type.find("step") == std::string::npos) mistake(where, type, "a step block");
            return reinterpret_cast<u64>(&nb::cast<StepBlock &>(value));
        }
        std::string element = type.substr(type.rfind(' ') == std::string::npos ? 0 : type.rfind(' ') + 1);
        element.pop_back();
        if (PyLong_Check(value.ptr())) return nb::cast<u64>(value);   // an address
        bool constant = type.compare(0, 6, "const ") == 0;
        if (constant) {
            auto array = nb::cast<nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>>(value);
            if (array.dtype() != dtype_of(element)) mistake(where, type, "an array of another dtype");
            return reinterpret_cast<u64>(array.data());
        }
        auto array = nb::cast<nb::ndarray<nb::c_contig, nb::device::cpu>>(value);
        if (array.dtype() != dtype_of(element)) mistake(where, type, "an array of another dtype");
        return reinterpret_cast<u64>(array.data());
    }
    if (type == "f32") {
        f32 number = static_cast<f32>(nb::cast<double>(value));
        std::memcpy(&bits, &number, sizeof number);
    } else if (type == "f64") {
        f64 number = nb::cast<double>(value);
        std::memcpy(&bits, &number, sizeof number);
    } else if (type == "u64") {
        bits = nb::cast<u64>(value);
    } else {
        i64 number = nb::cast<i64>(value);
        std::memcpy(&bits, &number, sizeof number);
    }
    return bits;
}

void call_kernel(const std::string &name, const std::string &types, nb::typed<nb::list, nb::any> arguments,
                 const std::string &isa) {
    const KernelEntry &entry = kernel_or_mistake(name, types, isa.empty() ? selected_isa() : isa);
    if (arguments.size() != entry.argument_count)
        mistake("kernel " + name, std::to_string(entry.argument_count) + " arguments",
                std::to_string(arguments.size()));
    std::vector<u64> cells(entry.argument_count);
    std::vector<void *> pointers(entry.argument_count);
    Addresses tables;
    for (u32 i = 0; i < entry.argument_count; ++i) {
        cells[i] = argument_bits("kernel " + name + " argument " + std::to_string(i), entry.arguments[i], arguments[i],
                                 tables);
        pointers[i] = &cells[i];
    }
    WithoutGil released;
    entry.thunk(pointers.data());
}

}  // namespace

void bind_engine(nb::module_ &m) {
    nb::register_exception_translator([](const std::exception_ptr &thrown, void *) {
        try {
            std::rethrow_exception(thrown);
        } catch (const Mistake &error) {
            nb::object type = nb::module_::import_("streamtrain.errors").attr("UserMistake");
            PyErr_SetString(type.ptr(), error.what());
        }
    });
    m.def("kernels", &kernel_list, nb::sig("def kernels() -> list[tuple[str, str, str, list[str], bool]]"),
          "(name, types, isa, arguments, host_only) of every kernel built into the module");
    m.attr("SOURCE_DIGEST") = source_digest;
    m.def("kernel_texts", &texts, nb::sig("def kernel_texts() -> dict[str, str]"),
          "path -> text of the headers kernels are built from");
    m.def("supported_isas", &supported_isas);
    m.def("select_isa", &select_isa, nb::arg("name"));
    m.def("call_kernel", &call_kernel, nb::arg("name"), nb::arg("types"), nb::arg("arguments"), nb::arg("isa") = "");
}

}  // namespace st
