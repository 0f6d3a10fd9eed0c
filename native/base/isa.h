// Which of the kernel builds runs: the best the processor knows, or the one asked for.
#pragma once
#include <string>
#include <vector>

namespace st {

std::vector<std::string> supported_isas();          // from the plainest to the best: v2, v3, v4; baseline on arm64
const std::string &selected_isa();                  // the best until select_isa says otherwise
const std::string &select_isa(const std::string &name);   // "auto" or one of supported_isas(); throws Mistake

}  // namespace st
