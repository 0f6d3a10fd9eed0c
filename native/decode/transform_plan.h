// A job's transforms compiled: which columns of the plan they read, in which order they run, which columns they make.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "decode/kind.h"
#include "decode/transform.h"

namespace st {

// Cell columns begin with one for each of these: what transforms read of a column that records give.
struct Reading {
    u32 column;                           // of the plan
    Holds holds;
    std::optional<CellStandIn> stand_in = {};   // of a missing cell
};

// A column of cells that a transform makes.
struct Made {
    u32 cell;
    Holds holds;
    bool becomes_column = false;
    u32 column = 0;                       // of the plan
    std::optional<CellStandIn> stand_in = {};
};

struct Step {
    std::unique_ptr<Transform> transform;
    std::vector<Made> results;
};

struct TransformPlan {
    std::vector<Reading> readings;
    std::vector<Step> steps;              // in written order
    i32 where = -1;                       // cell column of the number that is 1 in rows that are not left out
    std::vector<u32> where_columns;       // of the plan, on which that rests
    i32 event_cell = -1;                  // the reading that tells when rows happened, where rows may be left out
};

}  // namespace st
