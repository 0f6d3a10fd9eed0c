// All columns of cells that a job's transforms read and make. The row being written is row 0.
#pragma once
#include "decode/cell_hashes.h"
#include "decode/letters.h"

namespace st {

// Of one thread.
struct Cells {
    std::vector<CellColumn> columns;
    Letters letters;
    CellHashes hashes;
    std::vector<f64> scratch;   // of a transform while it runs
};

}  // namespace st
