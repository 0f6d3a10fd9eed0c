#include "bindings/bindings.h"
#include "memory/slot.h"

namespace st {

void bind_memory(nb::module_ &m) {
    m.attr("RANGE_BYTES") = sizeof(Range);
    m.attr("SLOT_HEADER_BYTES") = sizeof(SlotHeader);
}

}  // namespace st
