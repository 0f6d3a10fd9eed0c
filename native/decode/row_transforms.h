// A job's transforms at work over the cells of a row or of a block of rows.
#pragma once
#include "decode/decode_plan.h"

namespace st {

class RowTransforms {
  public:
    explicit RowTransforms(const TransformPlan *plan) : plan_(plan) {
        if (!plan) return;
        for (const Reading &reading : plan->readings) cells.columns.emplace_back(reading.holds);
        for (const Step &step : plan->steps)
            for (const Made &made : step.results) cells.columns.emplace_back(made.holds);
    }

    Cells cells;

    // Rows [0, count), whose cells and `given` lie in the columns of the readings.
    void run(u32 count) {
        cells.hashes.start_block();
        for (u64 k = 0; k < plan_->readings.size(); ++k)
            if (const auto &stand_in = plan_->readings[k].stand_in) stand_in->put(cells.columns[k], count);
        for (const Step &step : plan_->steps) {
            step.transform->run(cells, count);
            for (const Made &made : step.results) {
                CellColumn &column = cells.columns[made.cell];
                column.find_given(count);
                if (made.stand_in) made.stand_in->put(column, count);
            }
        }
    }

    // Whether `where` leaves a row out.
    bool leaves_out(u32 row) const {
        return plan_->where >= 0 && cells.columns[static_cast<u32>(plan_->where)].numbers[row] != 1;
    }

  private:
    const TransformPlan *plan_;
};

}  // namespace st
