// A Python object's writable bytes, held for a scope.
#pragma once
#include <nanobind/nanobind.h>

#include "base/types.h"

namespace st {

struct Buffer {
    explicit Buffer(nanobind::handle object) {
        if (PyObject_GetBuffer(object.ptr(), &view, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) != 0)
            throw nanobind::python_error();
        data = static_cast<u8 *>(view.buf);
        size = static_cast<u64>(view.len);
    }
    ~Buffer() { PyBuffer_Release(&view); }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;

    Py_buffer view{};
    u8 *data = nullptr;
    u64 size = 0;
};

}  // namespace st
