// A column as Schema.native_columns() describes it, and the options of kinds and formats.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "bindings/bindings.h"
#include "decode/decode_plan.h"
#include "decode/record_format.h"

namespace st {
namespace nb = nanobind;

using Columns = nb::typed<nb::list, NamedValues>;   // Schema.native_columns()
using FormatName =   // alone, or {"name": ...} with its options
    nb::typed<nb::handle, std::variant<nb::str, nb::typed<nb::mapping, nb::str, nb::any>>>;

// Python's decoder of media: it is called with a view of each and one of where their rows go, and gives a byte for
// each.
class PythonMedia : public MediaDecoder {
  public:
    explicit PythonMedia(nb::object decode) : decode_(std::move(decode)) {}
    ~PythonMedia() override {
        WithGil held;
        decode_.reset();
    }
    void decode(const MediaForm &form, const std::string_view *encoded, u64 count, u8 *rows, u8 *good) override {
        WithGil held;
        nb::list views;
        for (u64 i = 0; i < count; ++i)
            views.append(view(const_cast<char *>(encoded[i].data()), encoded[i].size(), PyBUF_READ));
        const nb::object to = view(reinterpret_cast<char *>(rows), count * form.bytes, PyBUF_WRITE);
        const nb::bytes told = nb::cast<nb::bytes>(decode_(views, to));
        if (told.size() != count) throw std::invalid_argument("a decoder of media gives a byte for each");
        std::memcpy(good, told.c_str(), count);
    }

  private:
    static nb::object view(char *bytes, u64 size, int access) {
        const nb::object made = nb::steal(PyMemoryView_FromMemory(bytes, static_cast<Py_ssize_t>(size), access));
        if (!made.is_valid()) throw nb::python_error();
        return made;
    }

    nb::object decode_;
};

inline OptionValue option_of(nb::handle value) {
    if (PyCallable_Check(value.ptr())) return std::make_shared<PythonMedia>(nb::borrow(value));
    if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
    if (nb::isinstance<nb::int_>(value)) return nb::cast<i64>(value);
    if (nb::isinstance<nb::float_>(value)) return nb::cast<f64>(value);
    if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
    if (PySequence_Check(value.ptr()) && nb::len(value) && nb::isinstance<nb::float_>(value[0]))
        return nb::cast<std::vector<f64>>(value);
    std::vector<i64> whole;
    if (nb::try_cast(value, whole) && !whole.empty()) return whole;
    return nb::cast<std::vector<std::string>>(value);
}

inline Options options_of(nb::dict given) {
    Options options;
    for (auto [name, value] : given) options.set(nb::cast<std::string>(name), option_of(value));
    return options;
}

// Python's answer to what is asked with a schema's id: (text, why there is none), or None: not yet.
class PythonSchemas : public SchemaSource {
  public:
    explicit PythonSchemas(nb::object ask) : ask_(std::move(ask)) {}
    ~PythonSchemas() override {
        WithGil held;
        ask_.reset();
    }
    std::optional<Answer> ask(const std::string &id) override {
        WithGil held;
        const nb::object answer = ask_(id);
        if (answer.is_none()) return {};
        return Answer{nb::cast<std::string>(answer[0]), nb::cast<std::string>(answer[1])};
    }

  private:
    nb::object ask_;
};

inline RecordFormat format_of(FormatName given) {
    RecordFormat format;
    if (nb::isinstance<nb::str>(given)) {
        format.name = nb::cast<std::string>(given);
        return format;
    }
    for (auto [name, value] : nb::cast<nb::dict>(given))
        if (nb::cast<std::string>(name) == "name") format.name = nb::cast<std::string>(value);
        else if (PyCallable_Check(value.ptr()))
            format.options.set(nb::cast<std::string>(name), std::make_shared<PythonSchemas>(nb::borrow(value)));
        else format.options.set(nb::cast<std::string>(name), option_of(value));
    return format;
}

inline PlanColumn column_of(nb::dict given) {
    PlanColumn column;
    column.name = nb::cast<std::string>(given["name"]);
    if (given.contains("from")) column.from = nb::cast<std::string>(given["from"]);
    if (given.contains("path")) {
        for (nb::handle step : nb::cast<nb::list>(given["path"]))
            if (nb::isinstance<nb::str>(step)) column.path.push_back({nb::cast<std::string>(step)});
            else column.path.push_back({"", nb::cast<i64>(step)});
        column.place = nb::cast<std::string>(given["place"]);
    }
    if (given["kind"].is_none()) return column;
    column.kind = make_kind(nb::cast<std::string>(given["kind"]), column.name, options_of(given["options"]));
    column.blocks = nb::cast<std::vector<std::string>>(given["blocks"]);
    const std::string missing = nb::cast<std::string>(given["missing"]);
    if (missing == "skip") column.missing = Missing::skip;
    if (missing == "value") column.missing = Missing::value;
    if (missing == "keep") column.missing = Missing::keep;
    if (missing == "skip_head") column.missing = Missing::head;
    column.is_made = given.contains("is_made");
    return column;
}

}  // namespace st
