// What an entry of a folder (a kind of column, a record format) is told beside its name: plain values by name.
#pragma once
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "base/types.h"
#include "decode/media.h"
#include "decode/schema_source.h"

namespace st {

using OptionValue = std::variant<bool, i64, f64, std::string, std::vector<std::string>, std::vector<i64>,
                                 std::vector<f64>, std::shared_ptr<SchemaSource>, std::shared_ptr<MediaDecoder>>;

class Options {
  public:
    void set(const std::string &name, OptionValue value) { values_[name] = std::move(value); }
    bool has(const std::string &name) const { return values_.count(name) != 0; }

    // The value, or `otherwise` where it is not given. Throws std::invalid_argument for one of another type: Python
    // has checked what a user says, so that is a mistake of ours.
    template <class T>
    T get(const std::string &name, T otherwise = T()) const {
        const auto found = values_.find(name);
        if (found == values_.end()) return otherwise;
        if (const T *value = std::get_if<T>(&found->second)) return *value;
        throw std::invalid_argument("option " + name + " is of another type");
    }

    // A whole number or a fraction.
    f64 number(const std::string &name, f64 otherwise = 0) const {
        const auto found = values_.find(name);
        if (found == values_.end()) return otherwise;
        if (const i64 *whole = std::get_if<i64>(&found->second)) return static_cast<f64>(*whole);
        return get<f64>(name);
    }

  private:
    std::map<std::string, OptionValue> values_;
};

}  // namespace st
