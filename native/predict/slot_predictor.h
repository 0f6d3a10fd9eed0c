// One slot and the plan that predicts it: what answering requests and answering rows of this process have in common.
#pragma once
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>

#include "decode/decoder.h"
#include "decode/decode_plan.h"
#include "plan/plan.h"

namespace st {

// One thread at a time; the parameters are the plan's, which stays as long as this.
class SlotPredictor {
  public:
    // std::invalid_argument unless `plan` predicts slots of `decode`'s layout.
    SlotPredictor(Plan &plan, std::shared_ptr<const DecodePlan> decode) : plan_(plan), decode_(std::move(decode)) {
        const SlotLayout &layout = decode_->layout;
        if (plan_.rows() != layout.row_capacity)
            throw std::invalid_argument("the plan is not for slots of this layout");
        slot_.reset(static_cast<u8 *>(std::aligned_alloc(64, align64(layout.slot_bytes))));
        if (!slot_) throw std::bad_alloc();
        std::memset(slot_.get(), 0, align64(layout.slot_bytes));
    }

    u32 width() const { return plan_.width(); }   // outputs of a row
    RowSink empty_slot() const { return {slot_.get(), 0, decode_->layout.row_capacity, -1}; }

    // Outputs of the rows that are in the slot, rows x width, until the next call.
    const f32 *predict(u32 rows) {
        if (rows == 0) return plan_.output();
        decode_->clear_behind(slot_.get(), rows);
        reinterpret_cast<SlotHeader *>(slot_.get())->rows = rows;
        plan_.predict(slot_.get());
        return plan_.output();
    }

  private:
    struct Free {
        void operator()(u8 *bytes) const { std::free(bytes); }
    };

    Plan &plan_;
    std::shared_ptr<const DecodePlan> decode_;
    std::unique_ptr<u8, Free> slot_;
};

}   // namespace st
