#include "predict/body_scorer.h"

#include <algorithm>
#include <stdexcept>

#include "decode/bad_rows.h"

namespace st {

BodyScorer::BodyScorer(Plan &plan, std::shared_ptr<void> owner, std::shared_ptr<const DecodePlan> decode,
                       AnswerWriter writer, u64 most_bytes)
    : owner_(std::move(owner)),
      predictor_(plan, *decode),
      batch_(RecordFormat{"json"}, std::move(decode)),
      writer_(std::move(writer)),
      most_bytes_(most_bytes) {
    if (predictor_.width() != writer_.width()) throw std::invalid_argument("the answers are not of the plan's width");
}

BodyAnswer BodyScorer::score(std::string_view body) {
    using Form = BodyAnswer::Form;
    text_.assign(1, '[');
    passed_ = 0;
    errors_ = 0;
    RecordView record;
    record.value = reinterpret_cast<const u8 *>(body.data());
    record.size = body.size();
    batch_.look_ahead(&record, 1);
    batch_.begin(record);
    for (bool done = false; !done;) {
        batch_.open();
        batch_.tally().clear();
        done = batch_.next();
        const auto &dead = batch_.tally().dead_rows;
        const auto end = std::find_if(dead.begin(), dead.end(), [](const DeadRows &rows) { return rows.remainder; });
        if (end != dead.end()) {
            passed_ = end->row_from;
            return refused(Form::broken, end->path, end->reason);
        }
        take_slot();
        if (text_.size() > most_bytes_) return refused(Form::too_large, "$", answer_too_large(most_bytes_));
    }
    const u32 rows = static_cast<u32>(passed_) - errors_;
    if (!batch_.record().many()) return {std::string_view(text_).substr(1), Form::row, rows, errors_};
    text_ += ']';
    return {text_, Form::rows, rows, errors_};
}

// The slot's rows, and between them those that cannot be used.
void BodyScorer::take_slot() {
    const RowTally &tally = batch_.tally();
    const f32 *output = predictor_.predict(batch_);
    const i64 end = passed_ + tally.trained + tally.dead + tally.filtered;
    const auto path = [this](i32 column, i64 row) { return batch_.record().path(column, row); };
    each_bad_row(tally, path, [&](i64 row, const std::string &place, std::string_view reason) {
        take_outputs(output, row);
        append_error(place, reason);
        return text_.size() <= most_bytes_;
    });
    if (text_.size() <= most_bytes_) take_outputs(output, end);
}

// Of the rows before `end`.
void BodyScorer::take_outputs(const f32 *&output, i64 end) {
    for (; passed_ < end; output += writer_.width()) {
        if (!is_finite(output, writer_.width())) {
            append_error("$", prediction_not_finite);
            continue;
        }
        if (passed_) text_ += ',';
        writer_.append(text_, output);
        ++passed_;
    }
}

void BodyScorer::append_error(std::string_view path, std::string_view reason) {
    if (passed_) text_ += ',';
    text_ += error_text(path, reason, where());
    ++passed_;
    ++errors_;
}

BodyAnswer BodyScorer::refused(BodyAnswer::Form form, std::string_view path, std::string_view reason) {
    text_ = error_text(path, reason, where());
    return {text_, form, 0, 1};
}

// The row at hand.
std::string BodyScorer::where() const {
    return batch_.record().many() ? "body row " + std::to_string(passed_) : "body";
}

}   // namespace st
