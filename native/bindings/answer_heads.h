// What the outputs of a plan say, as Python tells it.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "predict/answers.h"

namespace st {

// Name, width, classes, whether these are values.
using AnswerHeads = std::vector<std::tuple<std::string, u32, std::vector<std::string>, bool>>;

inline std::vector<AnswerHead> answer_heads(const AnswerHeads &given) {
    std::vector<AnswerHead> heads;
    for (const auto &[name, width, classes, are_values] : given) heads.push_back({name, width, classes, are_values});
    if (heads.empty()) throw std::invalid_argument("an answer says one thing or more");
    return heads;
}

}  // namespace st
