// Records looked at before they are decoded, for what is better decoded together than row by row: media. What was not
// looked at is decoded all the same.
#pragma once
#include <memory>
#include <vector>

#include "decode/decode_plan.h"
#include "decode/decoder.h"
#include "decode/media_memo.h"

namespace st {

class LookAhead {
  public:
    // nullptr: no column of the plan asks for it.
    static std::unique_ptr<LookAhead> of(const RecordFormat &format, const DecodePlan &plan) {
        std::vector<PlanColumn> columns = plan.columns;
        bool any = false;
        for (PlanColumn &column : columns) {
            column.kind = column.kind && column.in_record() ? column.kind->ahead() : nullptr;
            column.missing = Missing::keep;
            column.blocks.clear();
            any |= column.kind != nullptr;
        }
        if (!any) return nullptr;
        const SlotLayout nowhere = SlotLayout::make(ROWS, 1, {{"none", Dtype::u8, 1}});
        auto made = DecodePlan::make(std::move(columns), plan.short_columns, nowhere);
        return std::unique_ptr<LookAhead>(new LookAhead(format, std::move(made)));
    }

    void look(const RecordView *records, u64 count) {
        MediaMemo &memo = MediaMemo::own();
        memo.clear();
        for (u64 i = 0; i < count; ++i) {
            if (!records[i].value || records[i].hole) continue;
            decoder_->begin(records[i], 0);
            for (bool done = decoder_->waits(); !done;) {
                RowSink sink{slot_.data(), 0, ROWS, -1};
                done = decoder_->next(sink, tally_);
                tally_.clear();
            }
        }
        memo.run();
    }

  private:
    static constexpr u32 ROWS = 64;

    LookAhead(const RecordFormat &format, std::shared_ptr<const DecodePlan> plan)
        : decoder_(make_decoder(format, plan)), slot_(plan->layout.slot_bytes) {}

    std::unique_ptr<Decoder> decoder_;
    std::vector<u8> slot_;
    RowTally tally_;
};

}  // namespace st
