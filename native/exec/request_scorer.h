// Requests → answers with one snapshot: bytes are decoded into a slot, predicted a slot at a time, written as JSON.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "exec/answers.h"
#include "exec/step.h"
#include "vectorize/decoder.h"
#include "vectorize/plan.h"

namespace st {

struct RequestBytes {
    const u8 *value;   // null: a record without a value
    u64 size;
};

struct Answer {
    std::string_view text;   // JSON, or the reason why there is no prediction; in place until the next score()
    bool failed;
    u32 rows;   // predicted
};

// Everything a prediction needs from one snapshot. One thread at a time.
class RequestScorer {
  public:
    // `plan` predicts slots of `decode`'s layout, `writer` is of its width; std::invalid_argument where they differ.
    // `owner` is kept as long as this object, for the memory the plan works on.
    RequestScorer(Plan &plan, std::shared_ptr<void> owner, std::shared_ptr<const DecodePlan> decode,
                  const std::string &format, AnswerWriter writer, i64 version, std::string digest);
    ~RequestScorer();

    i64 version() const { return version_; }
    const std::string &version_text() const { return version_text_; }
    const std::string &digest() const { return digest_; }   // hex

    // One answer per request, in order. A request with a bad row is answered with its first reason.
    void score(const RequestBytes *requests, std::size_t count, std::vector<Answer> &answers);

  private:
    struct Decoded {
        u64 first_row;   // in outputs_
        u32 rows;
        bool many;             // its answer is an array
        std::string problem;   // empty: good
    };
    Decoded decode_one(const RequestBytes &request);
    void predict_slot();
    void write_one(Decoded &decoded, Answer &answer);

    Plan &plan_;
    std::shared_ptr<void> owner_;
    std::shared_ptr<const DecodePlan> decode_;
    std::unique_ptr<Decoder> decoder_;
    AnswerWriter writer_;
    i64 version_;
    std::string version_text_, digest_;
    u8 *slot_;
    RowSink sink_;
    RowTally tally_;
    std::vector<f32> outputs_;
    std::vector<Decoded> decoded_;
    std::string text_;
};

}   // namespace st
