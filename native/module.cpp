// The Python extension streamtrain._native: one bind_<area> function per file of bindings/.
#include "bindings/bindings.h"

namespace nb = nanobind;

NB_MODULE(_native, m) {
    nb::set_leak_warnings(false);   // a process that ends while threads hold objects is no leak worth a message
    m.doc() = "streamtrain's native code. `python -m tests.native.stub` writes its stub, _native.pyi.";
    st::bind_memory(m);
    st::bind_state(m);
    st::bind_engine(m);
    st::bind_plan(m);
    st::bind_ring(m);
    st::bind_train(m);
    st::bind_source(m);
    st::bind_kafka(m);
    st::bind_decode(m);
    st::bind_batch_filler(m);
    st::bind_encode(m);
    st::bind_row_reader(m);
    st::bind_predict(m);
    st::bind_row_scorer(m);
}
