#include "exec/request_scorer.h"

#include <cstdlib>
#include <new>
#include <stdexcept>

namespace st {
namespace {

constexpr std::size_t answer_bytes = 900'000;   // what fits a message of 1,000,000 bytes with key and headers
constexpr std::size_t problem_bytes = 2'000;    // a reason goes into a header

std::string describe(const RowTally &tally) {
    if (tally.dead_rows.empty()) return "a row was left out: a column with missing = \"skip\" is missing";
    const DeadRows &first = tally.dead_rows.front();
    std::string text = first.path + ": " + first.reason;
    if (tally.dead > 1) text += " (and " + std::to_string(tally.dead - 1) + " more bad rows)";
    return text;
}

// At most `size` bytes, not cutting a UTF-8 character.
std::string_view cut(std::string_view text, std::size_t size) {
    if (text.size() <= size) return text;
    while (size && (static_cast<u8>(text[size]) & 0xC0) == 0x80) --size;
    return text.substr(0, size);
}

}   // namespace

RequestScorer::RequestScorer(Plan &plan, std::shared_ptr<void> owner, std::shared_ptr<const DecodePlan> decode,
                             const std::string &format, AnswerWriter writer, i64 version, std::string digest)
    : plan_(plan),
      owner_(std::move(owner)),
      decode_(std::move(decode)),
      decoder_(make_decoder(format, decode_)),
      writer_(std::move(writer)),
      version_(version),
      version_text_(std::to_string(version)),
      digest_(std::move(digest)) {
    const SlotLayout &layout = decode_->layout;
    if (plan.rows() != layout.row_capacity || plan.width() != writer_.width())
        throw std::invalid_argument("the plan is not for slots of this layout");
    slot_ = static_cast<u8 *>(std::aligned_alloc(64, align64(layout.slot_bytes)));
    if (!slot_) throw std::bad_alloc();
    std::memset(slot_, 0, align64(layout.slot_bytes));
    sink_.slot = slot_;
    sink_.row_capacity = layout.row_capacity;
}

RequestScorer::~RequestScorer() { std::free(slot_); }

void RequestScorer::score(const RequestBytes *requests, std::size_t count, std::vector<Answer> &answers) {
    outputs_.clear();
    decoded_.clear();
    text_.clear();
    for (std::size_t i = 0; i < count; ++i) decoded_.push_back(decode_one(requests[i]));
    predict_slot();
    // Views into text_ are made when it does not grow any more: first the lengths.
    answers.assign(count, Answer{});
    for (std::size_t i = 0; i < count; ++i) write_one(decoded_[i], answers[i]);
    const char *at = text_.data();
    for (Answer &answer : answers) {
        answer.text = {at, answer.text.size()};
        at += answer.text.size();
    }
}

RequestScorer::Decoded RequestScorer::decode_one(const RequestBytes &request) {
    Decoded decoded{outputs_.size() / writer_.width() + sink_.rows, 0, false, {}};
    if (!request.value) {
        decoded.problem = "$: expected a row, got a record without a value";
        return decoded;
    }
    tally_.clear();
    decoder_->begin(request.value, request.size, 0);
    while (!decoder_->next(sink_, tally_)) predict_slot();
    if (tally_.dead || tally_.filtered) decoded.problem = describe(tally_);
    decoded.rows = tally_.trained;
    decoded.many = decoder_->many();
    return decoded;
}

void RequestScorer::predict_slot() {
    if (sink_.rows == 0) return;
    decode_->clear_behind(slot_, sink_.rows);
    reinterpret_cast<SlotHeader *>(slot_)->rows = sink_.rows;
    plan_.predict(slot_);
    const f32 *output = plan_.output();
    outputs_.insert(outputs_.end(), output, output + u64{sink_.rows} * writer_.width());
    sink_.rows = 0;
}

// Appends to text_; answer.text holds only the length so far.
void RequestScorer::write_one(Decoded &decoded, Answer &answer) {
    const std::size_t start = text_.size();
    const f32 *row = outputs_.data() + decoded.first_row * writer_.width();
    if (decoded.many) text_ += '[';
    for (u32 i = 0; decoded.problem.empty() && i < decoded.rows; ++i, row += writer_.width()) {
        if (i) text_ += ',';
        if (!writer_.append(text_, row))
            decoded.problem = "row " + std::to_string(i) + ": the prediction is not finite";
        if (text_.size() - start > answer_bytes)
            decoded.problem =
                "the answer is larger than " + std::to_string(answer_bytes) + " bytes; send fewer rows at once";
    }
    if (decoded.many) text_ += ']';
    answer.rows = decoded.rows;
    if (!decoded.problem.empty()) {
        text_.resize(start);
        text_ += cut(decoded.problem, problem_bytes);
        answer.failed = true;
        answer.rows = 0;
    }
    answer.text = {text_.data(), text_.size() - start};
}

}   // namespace st
