// The words that stand for a missing cell in texts of a number or a time: those of pandas' read_csv, R, SQL, SAS and
// UCI's data sets, and a job's own. No column of texts or categories has any: there NA is Namibia.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "decode/options.h"

namespace st {

inline constexpr std::string_view MISSING_WORDS[] = {
    "nan",  "NaN",  "NAN",  "-nan", "-NaN", "NA",       "N/A",     "n/a",    "#N/A",    "#NA",    "#N/A N/A", "<NA>",
    "None", "none", "null", "NULL", "Null", "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN", "NaT",    "\\N",      "?",
    "-",    "."};

inline std::string_view without_spaces(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

class MissingWords {
  public:
    explicit MissingWords(const Options &options) : more_(options.get<std::vector<std::string>>("missing_words")) {}

    // Spaces around a word do not count, nor do spaces alone.
    bool has(std::string_view text) const {
        const std::string_view word = without_spaces(text);
        return word.empty() || std::find(std::begin(MISSING_WORDS), std::end(MISSING_WORDS), word) !=
                                   std::end(MISSING_WORDS) ||
               std::find(more_.begin(), more_.end(), word) != more_.end();
    }

  private:
    const std::vector<std::string> more_;
};

}  // namespace st
