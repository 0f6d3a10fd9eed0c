// Errors of native code: where, what was expected, what was found, what to do next.
#pragma once
#include <stdexcept>
#include <string>

namespace st {

// The call, the job or the data does not fit; becomes streamtrain.errors.UserMistake in Python.
struct Mistake : std::runtime_error {
    using std::runtime_error::runtime_error;
};

[[noreturn]] inline void mistake(const std::string &where, const std::string &expected, const std::string &got,
                                 const std::string &next = "") {
    throw Mistake(where + ": expected " + expected + ", got " + got + (next.empty() ? "" : "; " + next));
}

}  // namespace st
