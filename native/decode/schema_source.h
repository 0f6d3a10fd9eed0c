// Where a decoder has the schemas that records name: a registry, as Python asks it. An answer never changes.
#pragma once
#include <optional>
#include <string>

namespace st {

class SchemaSource {
  public:
    struct Answer {
        std::string schema;    // its text, as options hold it; "" where there is none
        std::string refusal;   // why there is none
    };
    virtual ~SchemaSource() = default;
    // Nothing: not yet; ask again. May wait for the answer, and may throw.
    virtual std::optional<Answer> ask(const std::string &id) = 0;
};

}  // namespace st
