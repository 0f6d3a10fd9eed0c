// What becomes of cells before they are a row's: a transform reads columns of cells and makes others, a block of rows
// at a time. A transform is a header of decode/transforms/, named by its stem.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "decode/cells.h"
#include "decode/options.h"

namespace st {

// Which columns of cells a transform reads, and which it makes.
struct CellPlaces {
    std::vector<u32> sources, results;
};

// Read-only, shared by decoders; what changes lies in the cells. A missing cell makes a missing one but where a
// transform's file says otherwise.
class Transform {
  public:
    explicit Transform(CellPlaces places) : places_(std::move(places)) {}
    virtual ~Transform() = default;

    // Rows [0, count), count at most BLOCK_ROWS. Sets the cells of its results; `given` of hashes too.
    virtual void run(Cells &cells, u32 count) const = 0;

  protected:
    const CellColumn &source(const Cells &cells, u64 i = 0) const { return cells.columns[places_.sources[i]]; }
    CellColumn &result(Cells &cells, u64 i = 0) const { return cells.columns[places_.results[i]]; }

    // Of one number another: NO_NUMBER where it is none.
    template <class Value>
    void each_number(Cells &cells, u32 count, Value value) const {
        const f64 *x = source(cells).numbers.data();
        f64 *y = result(cells).numbers.data();
        if (count == 1) [[likely]] {
            y[0] = number_or_none(value(x[0]));
            return;
        }
        for (u32 i = 0; i < count; ++i) y[i] = number_or_none(value(x[i]));
    }

    CellPlaces places_;
};

// Throws std::invalid_argument for a name no transform has.
std::unique_ptr<Transform> make_transform(const std::string &name, CellPlaces places, const Options &options);

std::vector<std::string> cell_transforms();   // the names make_transform() knows, in alphabetical order

}  // namespace st
