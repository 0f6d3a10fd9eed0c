// A plan that predicts batches: what answering requests and answering rows of this process have in common.
#pragma once
#include <stdexcept>

#include "decode/batch_filler.h"
#include "plan/plan.h"

namespace st {

// One thread at a time; the parameters are the plan's, which stays as long as this.
class SlotPredictor {
  public:
    // std::invalid_argument unless `plan` predicts slots of `decode`'s layout.
    SlotPredictor(Plan &plan, const DecodePlan &decode) : plan_(plan) {
        if (plan_.rows() != decode.layout.row_capacity)
            throw std::invalid_argument("the plan is not for slots of this layout");
    }

    u32 width() const { return plan_.width(); }   // outputs of a row

    // Outputs of the batch's rows, rows x width, until the next call.
    const f32 *predict(BatchFiller &batch) {
        if (batch.rows() == 0) return plan_.output();
        batch.close();
        plan_.predict(batch.slot());
        return plan_.output();
    }

  private:
    Plan &plan_;
};

}   // namespace st
