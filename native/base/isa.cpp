#include "base/isa.h"

#include <algorithm>

#include "base/fail.h"

namespace st {

std::vector<std::string> supported_isas() {
#if defined(__x86_64__)
    std::vector<std::string> names{"v2"};   // the module itself is built for it
    bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
              __builtin_cpu_supports("bmi2");
    bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512vl");
    if (v3) names.push_back("v3");
    if (v4) names.push_back("v4");
    return names;
#else
    return {"baseline"};
#endif
}

static std::string &chosen() {
    static std::string name = supported_isas().back();
    return name;
}

const std::string &selected_isa() { return chosen(); }

const std::string &select_isa(const std::string &name) {
    std::vector<std::string> names = supported_isas();
    if (name == "auto") return chosen() = names.back();
    if (std::find(names.begin(), names.end(), name) == names.end()) {
        std::string list = "auto";
        for (const std::string &known : names) list += ", " + known;
        mistake("instruction set", "one this processor has (" + list + ")", name);
    }
    return chosen() = name;
}

}  // namespace st
