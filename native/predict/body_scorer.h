// A body of JSON → the JSON of its answers, with one snapshot: what a server of HTTP sends back.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "predict/answers.h"
#include "predict/slot_predictor.h"

namespace st {

// In place until the next score().
struct BodyAnswer {
    enum class Form : u8 { row, rows, broken, too_large };

    std::string_view text;   // an object of one row, an array of many; else the error as an object
    Form form;
    u32 rows, errors;        // predicted, and answered with an error
};

// One thread at a time; parameters are the plan's, which `owner` keeps.
class BodyScorer {
  public:
    // `plan` predicts slots of `decode`'s layout, `writer` is of its width; std::invalid_argument where they differ.
    BodyScorer(Plan &plan, std::shared_ptr<void> owner, std::shared_ptr<const DecodePlan> decode, AnswerWriter writer,
               u64 most_bytes);

    // Rows in the forms of JSON records. An error stands in the place of each row that cannot be predicted; a body that
    // cannot be decoded to its end is broken as a whole, and so are answers of more than `most_bytes`.
    BodyAnswer score(std::string_view body);

  private:
    void take_slot();
    void take_outputs(const f32 *&output, i64 end);
    void append_error(std::string_view path, std::string_view reason);
    BodyAnswer refused(BodyAnswer::Form form, std::string_view path, std::string_view reason);
    std::string where() const;

    std::shared_ptr<void> owner_;
    SlotPredictor predictor_;
    BatchFiller batch_;
    AnswerWriter writer_;
    u64 most_bytes_;
    i64 passed_ = 0;   // rows
    u32 errors_ = 0;
    std::string text_;
};

}   // namespace st
