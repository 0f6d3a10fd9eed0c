// All columns of cells that a job's transforms read and make.
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

// Where the row being written has its cells: which row of which they are, behind which letters.
class CellRow {
  public:
    explicit CellRow(Cells &cells) : cells_(&cells) {}

    void move_to(Cells &cells, u32 row) { cells_ = &cells, row_ = row, letters_ = cells.letters.mark(); }
    void start() const { cells_->letters.back_to(letters_); }

    CellColumn &column(u32 cell) const { return cells_->columns[cell]; }
    u32 row() const { return row_; }
    Letters &letters() const { return cells_->letters; }

  private:
    Cells *cells_;
    u32 row_ = 0;
    Letters::Mark letters_;
};

}  // namespace st
