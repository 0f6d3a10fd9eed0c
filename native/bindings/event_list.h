// What a client reports, as Python lists it.
#pragma once
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <vector>

#include "bindings/bindings.h"
#include "kafka/events.h"

namespace st {

using EventList = nb::typed<nb::list, std::tuple<int, int, std::string, std::string>>;   // level, code, facility, text

inline EventList event_list(const std::vector<KafkaEvent> &events) {
    nb::list out;
    for (const KafkaEvent &e : events) out.append(nb::make_tuple(e.level, e.code, e.facility, e.text));
    return out;
}

}  // namespace st
