// A state's blocks as Python sees them: what they are, where they lie, and the rules they go by.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <tuple>
#include <utility>

#include "base/fail.h"
#include "base/logit_bins.h"
#include "base/moments.h"
#include "base/vocabulary.h"
#include "bindings/bindings.h"
#include "bindings/buffer.h"
#include "bindings/struct_layout.h"
#include "state/changed.h"
#include "state/rule.h"
#include "state/rules/plateau.h"
#include "state/tally_sum.h"

namespace st {
namespace {

using Address = std::uintptr_t;
void check_bytes(const char *what, const Buffer &buffer, u64 bytes) {
    if (buffer.size != bytes) mistake(what, std::to_string(bytes) + " bytes", std::to_string(buffer.size));
}

void begin_lineage(const StateLayout &layout, nb::handle state, u32 workers, nb::handle mean) {
    Buffer from(state), to(mean);
    check_bytes("a lineage's state", from, layout.state_bytes);
    check_bytes("a lineage's first mean", to, layout.mean_bytes(workers));
    layout.begin_lineage(from.data, workers, to.data);
}

// Offsets of buffers of these sizes, one behind the other as a state's blocks lie, and where the last one ends.
std::tuple<std::vector<u64>, u64> place_blocks(const std::vector<u64> &sizes) {
    std::vector<u64> offsets;
    u64 at = 0;
    for (u64 size : sizes) {
        offsets.push_back(at);
        at += align64(size);
    }
    return {offsets, at};
}

using Weighted = std::vector<std::tuple<Address, f64>>;

std::vector<Contribution> contributions_of(const Weighted &each) {
    std::vector<Contribution> contributions;
    for (auto [vector, weight_sum] : each)
        contributions.push_back({reinterpret_cast<const u8 *>(vector), weight_sum});
    return contributions;
}

void average(const StateLayout &layout, Address start, const Weighted &workers, Address mean, Address moments) {
    WithoutGil release;
    const RoundStart from{reinterpret_cast<const u8 *>(start), reinterpret_cast<const u8 *>(moments)};
    fold_round(layout, from, contributions_of(workers), reinterpret_cast<u8 *>(mean));
}

f64 join(const StateLayout &layout, Address start, const Weighted &each, Address joined, Address moments) {
    check_joins(layout);
    WithoutGil release;
    const RoundStart from{reinterpret_cast<const u8 *>(start), reinterpret_cast<const u8 *>(moments)};
    return join_round(layout, from, contributions_of(each), reinterpret_cast<u8 *>(joined));
}

std::tuple<f64, f64> binary_curves(nb::handle tally) {
    Buffer from(tally);
    check_bytes("a tally", from, (1 + TALLY_ENTRIES) * sizeof(TallyEntry));
    const auto [auc, average_precision] = curves_of(reinterpret_cast<const f64 *>(from.data));
    return {auc, average_precision};
}

// Names of the words of a struct of 8 bytes each.
template <class Struct> nb::object words_of(std::vector<FieldLayout> fields) {
    static_assert(sizeof(Struct) % 8 == 0);
    if (fields.size() != sizeof(Struct) / 8) throw std::logic_error("a block of words: expected each of them once");
    return struct_layout(std::move(fields), sizeof(Struct))["names"];
}

void bind_words(nb::module_ &m) {
    {
        using Struct = ColumnMoments;
        m.attr("MOMENTS") = words_of<Struct>(
            {ST_FIELD(count), ST_FIELD(mean), ST_FIELD(squares), ST_FIELD(clip), ST_FIELD(half_life), ST_FIELD(floor),
             ST_FIELD(outside), ST_FIELD(least), ST_FIELD(clipped), ST_FIELD(raw_mean), ST_FIELD(raw_squares)});
    }
    {
        using Struct = VocabularyHead;
        m.attr("VOCABULARY_HEAD") = words_of<Struct>(
            {ST_FIELD(clock_ms), ST_FIELD(rounds), ST_FIELD(evicted), ST_FIELD(used), ST_FIELD(shift), ST_FIELD(admit),
             ST_FIELD(evict_ms), ST_FIELD(reserved)});
    }
    {
        using Struct = rules::Plateau;
        m.attr("PLATEAU") = words_of<Struct>(
            {ST_FIELD(left), ST_FIELD(best), ST_FIELD(since), ST_FIELD(evaluations), ST_FIELD(loss), ST_FIELD(weight),
             ST_FIELD(rows), ST_FIELD(every), ST_FIELD(patience), ST_FIELD(threshold), ST_FIELD(factor),
             ST_FIELD(least)});
    }
}

}  // namespace

void bind_state(nb::module_ &m) {
    bind_words(m);
    m.attr("CACHE_LINE") = CACHE_LINE;
    m.attr("LOGIT_BINS") = LOGIT_BINS;
    m.attr("LOGIT_BINS_OF_ONE") = LOGIT_BINS_OF_ONE;
    m.attr("LOGIT_EVEN_TO") = LOGIT_EVEN_TO;
    m.attr("LOGIT_MOMENTS") = LOGIT_MOMENTS;
    m.attr("TALLY_ENTRIES") = TALLY_ENTRIES;
    m.attr("TALLY_WIDTH") = TALLY_WIDTH;
    m.attr("DISTINCT") = DISTINCT;
    m.attr("CURVES") = CURVES;
    m.attr("OPTIMIZER_STEPS") = OPTIMIZER_STEPS;
    m.attr("OUTER_VELOCITY") = OUTER_VELOCITY;
    m.attr("OUTER_SETTINGS") = OUTER_SETTINGS;
    m.attr("SCHEDULE_STANDING") = SCHEDULE_STANDING;
    m.attr("WINDOWS_CLOSED") = WINDOWS_CLOSED;
    m.def("binary_curves", &binary_curves, nb::arg("tally"), "Returns AUC and average precision; -1: full.");
    m.def("place", &place_blocks, nb::arg("sizes"),
          "Places buffers one behind the other on cache lines, as a state's blocks lie.\n\n"
          "Returns their offsets, and where the last one ends.");
    m.def("state_rules", [] {
        nb::dict rules;
        for (const Rule &rule : state_rules()) {
            nb::list dtypes;
            for (Dtype dtype : rule.dtypes) dtypes.append(name_of(dtype));
            rules[rule.name] = nb::tuple(dtypes);
        }
        return rules;
    }, nb::sig("def state_rules() -> dict[str, tuple[str, ...]]"),
    "Returns the dtypes that each rule can store, by the name of the rule.");
    nb::class_<StateBlockSpec>(m, "StateBlockSpec")
        .def(
            "__init__",
            [](StateBlockSpec *spec, std::string name, std::string group, std::string rule, std::vector<u64> shape,
               std::string dtype, std::string rows_of) {
                new (spec) StateBlockSpec{std::move(name), std::move(group), std::move(rule), std::move(shape),
                                          std::move(rows_of), std::move(dtype)};
            },
            nb::arg("name"), nb::arg("group"), nb::arg("rule"), nb::arg("shape"), nb::arg("dtype") = "",
            nb::arg("rows_of") = "",
            "`dtype`: one the rule takes; empty: its first. `rows_of`: the block that says whose its rows are.");
    nb::class_<StateBlock>(m, "StateBlock")
        .def_ro("name", &StateBlock::name)
        .def_ro("group", &StateBlock::group)
        .def_prop_ro("rule", [](const StateBlock &block) { return block.rule->name; })
        .def_prop_ro("dtype", [](const StateBlock &block) { return name_of(block.dtype); })
        .def_prop_ro("shape", [](const StateBlock &block) { return nb::tuple(nb::cast(block.shape)); },
                     nb::for_getter(nb::sig("def shape(self) -> tuple[int, ...]")))
        .def_ro("offset", &StateBlock::offset)
        .def_ro("part_offset", &StateBlock::part_offset)
        .def_prop_ro("count", &StateBlock::count)
        .def_prop_ro("bytes", &StateBlock::bytes);
    nb::class_<PublishedLayout>(m, "PublishedLayout",
                                "The blocks of a mean buffer. A block kept per worker is there once per worker, as\n"
                                "`<block>@<worker>`, shape (1, ...).")
        .def_ro("blocks", &PublishedLayout::blocks)
        .def_ro("state_bytes", &PublishedLayout::state_bytes);
    nb::class_<StateLayout>(m, "StateLayout")
        .def_static("make", &StateLayout::make, nb::arg("blocks"),
                    "Lays out the learned part, then the statistics part, each in the order given.")
        .def_ro("blocks", &StateLayout::blocks)
        .def_ro("learned_bytes", &StateLayout::learned_bytes)
        .def_ro("state_bytes", &StateLayout::state_bytes)
        .def_prop_ro("statistics_bytes", &StateLayout::statistics_bytes)
        .def("published", &StateLayout::published, nb::arg("workers"))
        .def("begin_lineage", &begin_lineage, nb::arg("state"), nb::arg("workers"), nb::arg("mean"),
             "Writes the mean buffer a lineage starts from: each published block has the values it has in `state`.");
    m.def(
        "copy_changed",
        [](Address to, Address from, u64 size, u64 most) {
            WithoutGil release;
            return copy_changed(reinterpret_cast<u8 *>(to), reinterpret_cast<const u8 *>(from), size, most);
        },
        nb::arg("to"), nb::arg("from_"), nb::arg("size"), nb::arg("most"),
        "Copies between addresses; equal pages stay as they are. Returns the bytes written, and ends at `most`.");
    m.def("average", &average, nb::arg("layout"), nb::arg("start"), nb::arg("workers"), nb::arg("mean"),
          nb::arg("first_moments") = 0,
          "Takes addresses: of the start, of (each worker's vector, its weight sum), of the mean, and of a statistics\n"
          "part whose moments replace the start's.");
    m.def("join", &join, nb::arg("layout"), nb::arg("start"), nb::arg("each"), nb::arg("joined"),
          nb::arg("first_moments") = 0,
          "Joins contributions to one, which `average` takes as it takes each of them: the mean has the same bits.\n\n"
          "Takes addresses as `average` does, and that of a whole state of zeros, `joined`. Returns the weight sum.\n"
          "Raises UserMistake for a layout with blocks that are kept per worker.");
}

}  // namespace st
