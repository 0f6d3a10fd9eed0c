#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.h"
#include "bindings/plan_transforms.h"
#include "decode/decode_plan.h"
#include "decode/fit_picture.h"
#include "decode/pictures.h"
#include "decode/sounds.h"
#include "decode/text_hash.h"
#include "decode/transforms/extract.h"

namespace st {
namespace {

std::shared_ptr<const DecodePlan> plan_of(Columns columns, std::vector<u32> short_columns, const SlotLayout &layout,
                                          nb::typed<nb::dict, nb::str, f64> constants,
                                          nb::typed<nb::handle, NamedValues> transforms, bool refuses_empty) {
    std::vector<PlanColumn> compiled;
    for (nb::handle column : columns) compiled.push_back(column_of(nb::cast<nb::dict>(column)));
    std::vector<Constant> known;
    for (auto [block, value] : constants) known.push_back({nb::cast<std::string>(block), nb::cast<f64>(value)});
    return DecodePlan::make(std::move(compiled), std::move(short_columns), layout, known,
                            transforms_of(transforms), refuses_empty);
}

using PictureSize = std::optional<std::pair<u64, u64>>;   // height, width
using SoundHead = std::optional<std::tuple<u64, u64, u64>>;

PictureSize size_of_picture(nb::bytes encoded) {
    pictures::Size head;
    picture_problem({encoded.c_str(), encoded.size()}, ~u64{0}, head);
    if (!head.height || !head.width) return std::nullopt;
    return std::pair{head.height, head.width};
}

SoundHead head_of_sound(nb::bytes encoded) {
    sounds::Head head;
    if (!sounds::read_head({encoded.c_str(), encoded.size()}, head).empty()) return std::nullopt;
    return std::tuple{head.rate, head.channels, head.count};
}

}  // namespace

void bind_decode(nb::module_ &m) {
    using Code = transforms::Extract::Code;
    nb::enum_<Code>(m, "PatternCode", nb::is_arithmetic(), "The action of a step of a pattern.")
        .value("LETTERS", Code::letters)
        .value("SPLIT", Code::split)
        .value("JUMP", Code::jump)
        .value("BEGIN", Code::begin)
        .value("END", Code::end)
        .value("OPEN", Code::open)
        .value("CLOSE", Code::close)
        .value("MATCH", Code::match);
    m.def(
        "murmur3",
        [](nb::bytes text, u32 seed, u32 bits) { return TextHasher{bits, seed}({text.c_str(), text.size()}); },
        nb::arg("text"), nb::arg("seed"), nb::arg("bits") = 32);
    using Points = nb::ndarray<u8, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
    using GivenPoints = nb::ndarray<const u8, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
    m.def(
        "fit_picture",
        [](const GivenPoints &from, const Points &to) {
            if (from.size() == 0 || to.size() == 0 || from.shape(2) != to.shape(2))
                throw std::invalid_argument("expected pictures with points, of as many colours");
            const Area given{from.shape(0), from.shape(1)}, wanted{to.shape(0), to.shape(1)};
            nb::gil_scoped_release released;
            fit_picture(from.data(), given, to.data(), wanted, to.shape(2));
        },
        nb::arg("points"), nb::arg("fitted"));
    m.def("picture_size", &size_of_picture, nb::arg("encoded"),
          "Returns height and width in the head of a JPEG or a PNG; None if it has none.");
    m.def("sound_head", &head_of_sound, nb::arg("encoded"),
          "Returns samples a second, channels and samples of each (0: unknown) in a WAV or a FLAC; else None.");
    m.def("decoder_formats", &decoder_formats);
    m.def("column_kinds", &column_kinds);
    m.def("cell_transforms", &cell_transforms);
    nb::class_<DecodePlan>(m, "DecodePlan")
        .def(nb::new_(&plan_of), nb::arg("columns"), nb::arg("short_columns"), nb::arg("layout"),
             nb::arg("constants"), nb::arg("transforms") = nb::none(), nb::arg("refuses_empty") = false,
             "`constants`: the value in every row, of each block that no column gives.")
        .def_prop_ro("layout", [](const DecodePlan &plan) { return plan.layout; });
}

}  // namespace st
