#include "predict/request_scorer.h"

#include <stdexcept>

#include "decode/bad_rows.h"

namespace st {
namespace {

constexpr std::size_t answer_bytes = 900'000;   // what fits a message of 1,000,000 bytes with key and headers
constexpr std::size_t batch_bytes = 16'000'000;   // of answers written at once, about
constexpr std::size_t problem_bytes = 2'000;    // a reason goes into a header
constexpr std::string_view no_value = "expected a row, got a record without a value";
const std::string answer_too_large_text = answer_too_large(answer_bytes);

// At most `size` bytes, not cutting a UTF-8 character.
std::string_view cut(std::string_view text, std::size_t size) {
    if (text.size() <= size) return text;
    while (size && (static_cast<u8>(text[size]) & 0xC0) == 0x80) --size;
    return text.substr(0, size);
}

}   // namespace

RequestScorer::RequestScorer(Plan &plan, std::shared_ptr<void> owner, std::shared_ptr<const DecodePlan> decode,
                             const RecordFormat &format, AnswerWriter writer, i64 version, std::string digest)
    : owner_(std::move(owner)),
      predictor_(plan, *decode),
      batch_(format, std::move(decode)),
      writer_(std::move(writer)),
      version_(version),
      version_text_(std::to_string(version)),
      digest_(std::move(digest)) {
    if (predictor_.width() != writer_.width()) throw std::invalid_argument("the answers are not of the plan's width");
}

std::size_t RequestScorer::score(const std::string &topic, const RecordView *requests, std::size_t count,
                                 std::vector<Answer> &answers) {
    batch_.open();
    outputs_.clear();
    bad_.clear();
    bad_bytes_ = 0;
    decoded_.clear();
    text_.clear();
    waits_ = false;
    const auto has_room = [this] { return bad_bytes_ + outputs_.size() * writer_.output_bytes() < batch_bytes; };
    for (std::size_t i = 0; i < count && (i == 0 || has_room()); ++i) {
        if (i % BatchFiller::AHEAD == 0)
            batch_.look_ahead(requests + i, std::min<u64>(BatchFiller::AHEAD, count - i));
        if (!decode_one(topic, requests[i])) break;
    }
    count = decoded_.size();
    predict_slot();
    // Views into text_ are made when it does not grow any more: first the lengths.
    answers.assign(count, Answer{.body = {}, .error = {}, .rows = 0, .errors = 0, .by = this});
    for (std::size_t i = 0; i < count; ++i) write_one(decoded_[i], answers[i]);
    const char *at = text_.data();
    for (Answer &answer : answers)
        for (std::string_view *part : {&answer.body, &answer.error}) {
            *part = {at, part->size()};
            at += part->size();
        }
    return count;
}

// False: it waits.
bool RequestScorer::decode_one(const std::string &topic, const RecordView &request) {
    Decoded decoded{&topic, &request, outputs_.size() / writer_.width() + batch_.rows(), bad_.size()};
    if (!request.value) {
        decoded.refusal = no_value;
        decoded_.push_back(decoded);
        return true;
    }
    RowTally &tally = batch_.tally();
    tally.clear();
    batch_.begin(request);
    waits_ = batch_.record().waits();
    if (waits_) return false;
    while (!batch_.next()) predict_slot();
    decoded.rows = tally.trained;
    decoded.many = batch_.record().many();
    if (tally.dead || tally.filtered) gather_bad_rows(decoded);
    decoded_.push_back(std::move(decoded));
    return true;
}

// While the decoder still knows the record: the errors of its dead and filtered rows, in the order of the rows. No more
// than make the answer too large.
void RequestScorer::gather_bad_rows(Decoded &decoded) {
    const RowTally &tally = batch_.tally();
    const DeadRows *first_dead = tally.dead_rows.empty() ? nullptr : &tally.dead_rows.front();
    decoded.many &= !(first_dead && first_dead->remainder && first_dead->row_from == 0);
    std::size_t bytes = 0;
    const auto path = [this](i32 column, i64 row) { return batch_.record().path(column, row); };
    each_bad_row(tally, path, [&](i64 row, const std::string &place, std::string_view reason) {
        bad_.push_back({row, error_text(place, cut(reason, problem_bytes), decoded.where(row))});
        bytes += bad_.back().text.size();
        if (decoded.problem.empty()) decoded.problem = place + ": " + std::string(reason);
        return bytes <= answer_bytes;
    });
    decoded.bad = static_cast<u32>(bad_.size() - decoded.first_bad);
    bad_bytes_ += bytes;
}

void RequestScorer::predict_slot() {
    const f32 *output = predictor_.predict(batch_);
    outputs_.insert(outputs_.end(), output, output + u64{batch_.rows()} * writer_.width());
    batch_.open();
}

// "flights.requests[3]@81122", with the row where there are many.
std::string RequestScorer::Decoded::where(i64 row) const {
    std::string text =
        *topic + "[" + std::to_string(request->partition) + "]@" + std::to_string(request->offset);
    if (many && row >= 0) text += " row " + std::to_string(row);
    return text;
}

// Appends to text_; the answer's views hold only their lengths so far.
void RequestScorer::write_one(Decoded &decoded, Answer &answer) {
    const std::size_t start = text_.size();
    if (decoded.refusal.empty()) write_rows(decoded, answer);
    if (!decoded.refusal.empty()) {
        text_.resize(start);
        text_ += error_text("$", decoded.refusal, decoded.where(-1));
        decoded.problem = "$: " + std::string(decoded.refusal);
        answer.rows = 0;
        answer.errors = 1;
    }
    const std::size_t end = text_.size();
    if (answer.errors && answer.rows == 0) {
        text_ += cut(decoded.problem, problem_bytes);
        if (answer.errors > 1) text_ += " (and " + std::to_string(answer.errors - 1) + " more bad rows)";
    }
    answer.body = {text_.data(), end - start};
    answer.error = {text_.data(), text_.size() - end};
}

void RequestScorer::write_rows(Decoded &decoded, Answer &answer) {
    const std::size_t start = text_.size();
    const f32 *output = outputs_.data() + decoded.first_output * writer_.width();
    const BadRow *bad = bad_.data() + decoded.first_bad, *const bad_end = bad + decoded.bad;
    const i64 rows = i64{decoded.rows} + decoded.bad;
    if (decoded.many) text_ += '[';
    for (i64 row = 0; row < rows; ++row) {
        if (row) text_ += ',';
        if (bad != bad_end && bad->row == row) {
            text_ += (bad++)->text;
            ++answer.errors;
            continue;
        }
        if (writer_.append(text_, output)) {
            ++answer.rows;
        } else {
            text_ += error_text("$", prediction_not_finite, decoded.where(row));
            if (decoded.problem.empty()) decoded.problem = "$: " + std::string(prediction_not_finite);
            ++answer.errors;
        }
        output += writer_.width();
        if (text_.size() - start > answer_bytes) {
            decoded.refusal = answer_too_large_text;
            return;
        }
    }
    if (decoded.many) text_ += ']';
    if (text_.size() - start > answer_bytes) decoded.refusal = answer_too_large_text;
}

}   // namespace st
