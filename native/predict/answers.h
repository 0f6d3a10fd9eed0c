// The JSON of an answer: {"prediction": 0.83}, or {"prediction": "walk", "probabilities": {...}} with several classes;
// {"error": {"path": ..., "reason": ..., "where": ...}} in place of a row that has no prediction.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace st {

// The keys of an answer.
inline constexpr std::string_view prediction_key = "prediction", probabilities_key = "probabilities";

// What the outputs of a row are called: nothing with one of them, else `classes`, by their index without names.
std::vector<std::string> output_names(u32 width, const std::vector<std::string> &classes);
// NaN and infinity are no prediction.
bool is_finite(const f32 *row, u32 width);
// The first of the highest.
template <class T>
u32 likeliest(const T *row, u32 width) {
    return static_cast<u32>(std::max_element(row, row + width) - row);
}

class AnswerWriter {
  public:
    // `width` outputs per row. One: the number itself. More: the likeliest of `classes`.
    AnswerWriter(u32 width, const std::vector<std::string> &classes);

    u32 width() const { return width_; }
    u64 output_bytes() const { return output_bytes_; }   // what one output takes in an answer, about
    // Appends one row's answer. False, with nothing appended, for NaN and infinity, which JSON does not have.
    bool append(std::string &out, const f32 *row) const;

  private:
    u32 width_;
    u64 output_bytes_ = 32;
    std::string begin_, probabilities_;   // what stands before the prediction, and before the classes'
    std::vector<std::string> names_;      // quoted and escaped
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
