// How many rows are summed one after the other in float32; the sums of such chains are added in double. A step's tile
// of rows is one chain: Python asks.
#pragma once
#include "base/types.h"

namespace st {

constexpr i64 CHAIN_ROWS = 256;   // one chain over 10^6 rows is 3e-3 off; from here on adding chains costs little

}  // namespace st
