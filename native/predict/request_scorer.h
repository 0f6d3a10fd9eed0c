// Requests → answers with one snapshot: bytes are decoded into a slot, predicted a slot at a time, written as JSON.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "predict/answers.h"
#include "predict/slot_predictor.h"
#include "source/record.h"

namespace st {

class RequestScorer;

// Views are in place until the next score() of the scorer that made it.
struct Answer {
    std::string_view body;    // JSON, never empty
    std::string_view error;   // why no row was answered; empty: some were, or the request has none
    u32 rows;                 // predicted
    u32 errors;               // rows answered with an error, or the request as a whole
    const RequestScorer *by;
};

// Everything a prediction needs from one snapshot. One thread at a time.
class RequestScorer {
  public:
    // `plan` predicts slots of `decode`'s layout, `writer` is of its width; std::invalid_argument where they differ.
    // `owner` is kept as long as this object, for the memory the plan works on.
    RequestScorer(Plan &plan, std::shared_ptr<void> owner, std::shared_ptr<const DecodePlan> decode,
                  const RecordFormat &format, AnswerWriter writer, i64 version, std::string digest);

    i64 version() const { return version_; }
    const std::string &version_text() const { return version_text_; }
    const std::string &digest() const { return digest_; }   // hex

    // Answers requests of `topic` in order until the answers take much memory; gives how many, at least one. Of one row
    // the answer is an object, of many an array, in which an error stands in the place of each row that cannot be
    // predicted. What cannot be decoded, from some row on, is one last error; from the first on it is the answer, an
    // object. A request that needs a schema that is not known yet ends them before it, and may be the first: waits().
    std::size_t score(const std::string &topic, const RecordView *requests, std::size_t count,
                      std::vector<Answer> &answers);
    bool waits() const { return waits_; }

  private:
    struct BadRow {
        i64 row;
        std::string text;   // its JSON
    };
    struct Decoded {
        const std::string *topic;
        const RecordView *request;
        u64 first_output, first_bad;
        u32 rows = 0, bad = 0;     // rows of outputs_ from first_output on, and of bad_ from first_bad on
        bool many = false;         // its answer is an array
        std::string problem;       // of a bad row, for a header; empty: none is bad
        std::string_view refusal;  // why the request as a whole has no answer; empty: it has one

        std::string where(i64 row) const;   // -1: no row
    };
    bool decode_one(const std::string &topic, const RecordView &request);
    void gather_bad_rows(Decoded &decoded);
    void predict_slot();
    void write_one(Decoded &decoded, Answer &answer);
    void write_rows(Decoded &decoded, Answer &answer);

    std::shared_ptr<void> owner_;
    SlotPredictor predictor_;
    BatchFiller batch_;
    AnswerWriter writer_;
    i64 version_;
    std::string version_text_, digest_;
    std::vector<f32> outputs_;
    std::vector<BadRow> bad_;
    u64 bad_bytes_ = 0;
    bool waits_ = false;
    std::vector<Decoded> decoded_;
    std::string text_;
};

}   // namespace st
