// The JSON of an answer: {"prediction": 0.83}, or {"prediction": "walk", "probabilities": {...}} with several classes;
// of several heads {"prediction": {"late": 0.83, "mode": "walk"}, "probabilities": {"mode": {...}}}, the latter where
// one has several classes; {"error": {"path": ..., "reason": ..., "where": ...}} in place of a row that has no
// prediction.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace st {

// Why a row, or a whole request, has no prediction.
inline constexpr std::string_view prediction_not_finite = "expected a finite prediction, got NaN or infinity";
std::string answer_too_large(u64 most_bytes);

// The keys of an answer.
inline constexpr std::string_view prediction_key = "prediction", probabilities_key = "probabilities";

// Outputs side by side that say one thing: a number, or with more than one the likeliest of `classes`. One head alone
// has no name.
struct AnswerHead {
    std::string name;
    u32 width;
    std::vector<std::string> classes;
    bool are_values;   // classes are whole numbers or booleans, and predicted as such

    // What its outputs are called: nothing with one of them, else the classes, by their index without names.
    std::vector<std::string> output_names() const;
};

// Of all heads together.
u32 width_of(const std::vector<AnswerHead> &heads);
// NaN and infinity are no prediction.
bool is_finite(const f32 *row, u32 width);
// The first of the highest.
template <class T>
u32 likeliest(const T *row, u32 width) {
    return static_cast<u32>(std::max_element(row, row + width) - row);
}

class AnswerWriter {
  public:
    explicit AnswerWriter(const std::vector<AnswerHead> &heads);

    u32 width() const { return width_; }
    u64 output_bytes() const { return output_bytes_; }   // what one output takes in an answer, about
    // Appends one row's answer. False, with nothing appended, for NaN and infinity, which JSON does not have.
    bool append(std::string &out, const f32 *row) const;

  private:
    struct Head {
        std::string key;                  // what stands before what it says: nothing of one alone
        u32 width;
        std::vector<std::string> names;   // quoted and escaped
        std::vector<std::string> values;  // of the classes, in JSON
    };
    static void append_prediction(std::string &out, const Head &head, const f32 *row);
    static void append_probabilities(std::string &out, const Head &head, const f32 *row);

    u32 width_;
    u64 output_bytes_ = 32;
    bool several_;
    std::string begin_, probabilities_;   // what stands before the prediction, and before the classes'
    std::vector<Head> heads_;
};

// Why there is no prediction: path and reason as in DeadRows, and where the row is ("flights.requests[0]@12 row 3").
std::string error_text(std::string_view path, std::string_view reason, std::string_view where);
// A JSON string of valid UTF-8 text.
std::string json_quoted(std::string_view text);
// Fewest digits that read back as the same float32, always with a point or an exponent.
void append_number(std::string &out, f32 value);
// A double of so few digits too: what a JSON reader makes of append_number()'s text.
f64 shortest(f32 value);

}   // namespace st
