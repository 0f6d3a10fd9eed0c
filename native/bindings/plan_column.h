// A column as Schema.native_columns() describes it.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "decode/decode_plan.h"

namespace st {
namespace nb = nanobind;

inline constexpr std::pair<const char *, Target> TARGETS[] = {
    {"number", Target::number},           {"category", Target::category}, {"label_number", Target::label_number},
    {"label_binary", Target::label_binary}, {"label_class", Target::label_class}, {"weight", Target::weight},
    {"event_time", Target::event_time},   {"ignored", Target::ignored},
};

inline PlanColumn column_of(nb::dict given) {
    PlanColumn column;
    column.name = nb::cast<std::string>(given["name"]);
    const std::string target = nb::cast<std::string>(given["target"]);
    bool known = false;
    for (const auto &[name, value] : TARGETS)
        if (target == name) column.target = value, known = true;
    if (!known) throw std::invalid_argument("no target is named " + target);
    if (given.contains("buckets")) column.buckets = nb::cast<u32>(given["buckets"]);
    if (column.target == Target::category && (column.buckets == 0 || column.buckets > 0x7fffffffu))
        throw std::invalid_argument(column.name + ": buckets must be between 1 and 2^31 - 1");
    if (given.contains("classes")) column.classes = nb::cast<std::vector<std::string>>(given["classes"]);
    if (given.contains("class_count")) column.class_count = nb::cast<u32>(given["class_count"]);
    if (given.contains("unit")) {
        const auto [numerator, divisor] = nb::cast<std::pair<i32, i32>>(given["unit"]);
        if (divisor < 1) throw std::invalid_argument(column.name + ": a unit's divisor must be at least 1");
        column.unit_numerator = numerator;
        column.unit_divisor = divisor;
    }
    const std::string missing = nb::cast<std::string>(given["missing"]);
    if (missing == "skip") column.missing = Missing::skip;
    if (missing == "value") {
        if (column.target == Target::category) column.set_missing(nb::cast<std::string>(given["missing_value"]));
        else column.set_missing(nb::cast<f64>(given["missing_value"]));
    }
    return column;
}

}  // namespace st
