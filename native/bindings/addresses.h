// How memory and time cross into Python: addresses as integers, copies as bytes, time-outs in seconds.
#pragma once
#include <vector>

#include "bindings/bindings.h"
#include "ring/futex.h"

namespace st {

using Address = std::uintptr_t;

inline Address address_of(const void *pointer) { return reinterpret_cast<Address>(pointer); }

template <class T>
nb::bytes bytes_of_vector(const std::vector<T> &items) {
    return nb::bytes(reinterpret_cast<const char *>(items.data()), items.size() * sizeof(T));
}

// Monotonic; so many seconds from now.
inline i64 deadline_ns(f64 timeout_s) { return monotonic_ns() + static_cast<i64>(timeout_s * 1e9); }

}  // namespace st
