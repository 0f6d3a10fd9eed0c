// What bindings/*.cpp offer to module.cpp. Only files of this folder and module.cpp know nanobind; each binding
// releases the GIL around native work that may wait or run long.
#pragma once
#include <nanobind/nanobind.h>
#include <unistd.h>

namespace st {
namespace nb = nanobind;

using NamedValues = nb::typed<nb::dict, nb::str, nb::any>;

// A thread that wants the GIL when the interpreter ends stays here until the process is gone, as from Python 3.14 on;
// before, Python ends such a thread through frames that may not be unwound, which aborts.
[[noreturn]] inline void stay() {
    for (;;) ::pause();
}

// Calls what takes the GIL.
template <class Take>
auto take_gil(Take take) {
    try {
        return take();
    } catch (...) {   // the thread's end, which is no exception of ours
        stay();
    }
}

// Gives up the GIL for a scope.
class WithoutGil {
  public:
    WithoutGil() : state_(PyEval_SaveThread()) {}
    ~WithoutGil() {
        take_gil([this] { PyEval_RestoreThread(state_); });
    }
    WithoutGil(const WithoutGil &) = delete;
    WithoutGil &operator=(const WithoutGil &) = delete;

  private:
    PyThreadState *state_;
};

// Takes it for a scope, in whatever thread. At the interpreter's end Python code of the scope may have lost it, and no
// thread has a state any more.
class WithGil {
  public:
    WithGil() : state_(take_gil([] {
        if (!Py_IsInitialized() && !PyGILState_GetThisThreadState()) stay();
        return PyGILState_Ensure();
    })) {}
    ~WithGil() {
        if (!PyGILState_GetThisThreadState() || !PyGILState_Check()) stay();
        PyGILState_Release(state_);
    }
    WithGil(const WithGil &) = delete;
    WithGil &operator=(const WithGil &) = delete;

  private:
    PyGILState_STATE state_;
};

void bind_memory(nb::module_ &m);   // slot layouts, limits
void bind_state(nb::module_ &m);    // rules, state layouts
void bind_engine(nb::module_ &m);   // kernels, instruction sets
void bind_plan(nb::module_ &m);     // step block, compiled plans
void bind_kafka(nb::module_ &m);    // librdkafka consumer and producer
void bind_decode(nb::module_ &m);   // decode plans
void bind_batch_filler(nb::module_ &m);   // records and Python rows into slots
void bind_encode(nb::module_ &m);   // Python rows to records
void bind_row_reader(nb::module_ &m);   // records to Python rows
void bind_predict(nb::module_ &m);  // scoring of requests, the predictor's loop
void bind_row_scorer(nb::module_ &m);   // scoring of Python rows

void bind_ring(nb::module_ &m);     // arena, the ends of its ring
void bind_train(nb::module_ &m);    // workers, round log
void bind_source(nb::module_ &m);   // sources, the loop from a source to slots, failpoints

}  // namespace st
