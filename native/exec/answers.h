// A model's output as JSON: {"prediction": 0.83}, or {"prediction": "walk", "probabilities": {...}} with several
// classes.
#pragma once
#include <string>
#include <vector>

#include "base/types.h"

namespace st {

class AnswerWriter {
  public:
    // `width` outputs per row. One: the number itself. More: the likeliest of `classes`, called by their index without
    // names.
    AnswerWriter(u32 width, const std::vector<std::string> &classes);

    u32 width() const { return width_; }
    // Appends one row's answer. False, with nothing appended, for NaN and infinity, which JSON does not have.
    bool append(std::string &out, const f32 *row) const;

  private:
    u32 width_;
    std::vector<std::string> names_;   // quoted and escaped
};

// A JSON string of valid UTF-8 text.
std::string json_quoted(const std::string &text);
// Fewest digits that read back as the same float32, always with a point or an exponent.
void append_number(std::string &out, f32 value);

}   // namespace st
