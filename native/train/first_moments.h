// The moments a lineage begins with, from all rows of its first round before any of them is trained. They are found on
// the host from the slots as they lie in the ring, so every worker and every backend gets the same bits.
#pragma once
#include <vector>

#include "ring/slot.h"
#include "state/state.h"

namespace st {

// Fills the moments of a statistics part (`base`, at the start of a lineage) from slots, rows of weight above 0.
// A column's values are held within the median +- clip deviations, the deviation being 1.4826 x the median distance
// from the median (MAD: Hampel, "The influence curve and its role in robust estimation", 1974). Where more than half of
// the values are the same, the distances that are not 0 say how far the others may be, by the same rule; a single one
// is held to the median: one value does not show that a column varies.
void first_moments(const StateLayout &layout, const SlotLayout &slot_layout, const std::vector<const u8 *> &slots,
                   u8 *base);

}  // namespace st
