// A record format as a job names it: a header of decode/formats/ by its stem, with its options.
#pragma once
#include <string>

#include "decode/options.h"

namespace st {

struct RecordFormat {
    std::string name;
    Options options = {};
};

}  // namespace st
