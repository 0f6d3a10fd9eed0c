// An Avro schema as the settings hold it: streamtrain/columns/formats/avro_schema.py has checked it and made its names
// full. https://avro.apache.org/docs/1.12.0/specification/
#pragma once
#include <deque>
#include <map>
#include <optional>

#include "decode/json_value.h"
#include "decode/kind.h"

namespace st {

struct AvroType;

struct AvroField {
    std::string name;
    std::vector<std::string> aliases;
    const AvroType *type;
    std::optional<JsonValue> otherwise;   // its default
};

struct AvroType {
    enum Kind : u8 {
        null, boolean, int_, long_, float_, double_, bytes, string, record, enumeration, array, map, choice, fixed
    };
    enum Logical : u8 { none, date, time, timestamp, decimal, uuid };
    static constexpr i64 VARIABLE = -1;

    Kind kind = null;
    Logical logical = none;
    std::string logical_name;
    TimeUnit unit = {1, 1};                 // of a timestamp or a date
    std::string name;                       // of a named type, in full
    std::vector<AvroField> fields;          // of a record
    std::vector<std::string> symbols;       // of an enumeration
    std::vector<const AvroType *> inner;    // of a union its branches; of an array its items, of a map its values
    i64 size = 0;                           // of fixed
    u32 scale = 0;                          // of a decimal
    i64 bytes_each = VARIABLE;              // that every value of it takes

    bool unit_counts() const { return logical == date || logical == timestamp; }
    const char *article() const {
        static constexpr const char *NAMES[] = {"null", "a boolean", "an int", "a long", "a float", "a double", "bytes",
                                                "text", "a record", "an enum", "an array", "a map", "a union", "bytes"};
        return NAMES[kind];
    }
    // Of a union of null and one other: that, and null's branch.
    const AvroType *nullable(u32 &null_branch) const {
        if (kind != choice || inner.size() != 2) return nullptr;
        for (u32 i = 0; i < 2; ++i) {
            null_branch = i;
            if (inner[i]->kind == null && inner[1 - i]->kind != null) return inner[1 - i];
        }
        return nullptr;
    }
};

class AvroSchema {
  public:
    // Throws std::invalid_argument for what is no schema of rows.
    explicit AvroSchema(const std::string &text) {
        const AvroType *top = read(JsonDocument::read(text));
        many_ = top->kind == AvroType::array;
        row_ = many_ ? top->inner[0] : top;
        if (row_->kind != AvroType::record)
            throw std::invalid_argument("expected an Avro record, or an array of them, got " +
                                        std::string(row_->article()));
    }

    AvroSchema(const AvroSchema &) = delete;   // its types refer to each other

    const AvroType &row() const { return *row_; }
    bool many() const { return many_; }   // a datum is an array of rows

  private:
    static constexpr i64 MOST_BYTES = i64{1} << 40;   // beyond it no record goes

    AvroType *make(AvroType::Kind kind) {
        types_.emplace_back();
        types_.back().kind = kind;
        return &types_.back();
    }

    const AvroType *read(const JsonValue &given) {
        if (given.kind == JsonValue::array) {
            AvroType *made = make(AvroType::choice);
            for (const JsonValue &branch : given.items) made->inner.push_back(read(branch));
            if (made->inner.empty()) throw std::invalid_argument("expected branches in an Avro union, got none");
            return made;
        }
        if (given.kind == JsonValue::text) {
            const auto known = named_.find(given.letters);
            return known != named_.end() ? known->second : plain(given.letters);
        }
        const std::string &kind = given.at("type").letters;
        if (kind == "record") return read_record(given);
        if (kind == "array" || kind == "map") {
            AvroType *made = make(kind == "map" ? AvroType::map : AvroType::array);
            made->inner.push_back(read(given.at(kind == "map" ? "values" : "items")));
            return made;
        }
        AvroType *made = kind == "enum"    ? name(make(AvroType::enumeration), given)
                         : kind == "fixed" ? name(make(AvroType::fixed), given)
                                           : plain(kind);
        if (made->kind == AvroType::enumeration)
            for (const JsonValue &symbol : given.at("symbols").items) made->symbols.push_back(symbol.letters);
        if (made->kind == AvroType::fixed)
            made->size = made->bytes_each = std::min<i64>(static_cast<i64>(given.at("size").as_size()), MOST_BYTES);
        if (const JsonValue *logical = given.find("logicalType")) read_logical(*made, logical->letters, given);
        return made;
    }

    AvroType *plain(const std::string &kind) {
        static const std::map<std::string, std::pair<AvroType::Kind, i64>> KINDS = {
            {"null", {AvroType::null, 0}},       {"boolean", {AvroType::boolean, 1}},
            {"int", {AvroType::int_, -1}},       {"long", {AvroType::long_, -1}},
            {"float", {AvroType::float_, 4}},    {"double", {AvroType::double_, 8}},
            {"bytes", {AvroType::bytes, -1}},    {"string", {AvroType::string, -1}}};
        const auto found = KINDS.find(kind);
        if (found == KINDS.end()) throw std::invalid_argument("no Avro type is named " + kind);
        AvroType *made = make(found->second.first);
        made->bytes_each = found->second.second;
        return made;
    }

    AvroType *name(AvroType *type, const JsonValue &given) {
        type->name = given.at("name").letters;
        named_[type->name] = type;
        return type;
    }

    const AvroType *read_record(const JsonValue &given) {
        AvroType *made = name(make(AvroType::record), given);   // its fields may name it
        i64 bytes = 0;
        for (const JsonValue &field : given.at("fields").items) {
            AvroField of{field.at("name").letters, {}, read(field.at("type")), {}};
            if (const JsonValue *aliases = field.find("aliases"))
                for (const JsonValue &alias : aliases->items) of.aliases.push_back(alias.letters);
            if (const JsonValue *otherwise = field.find("default")) of.otherwise = *otherwise;
            const i64 each = of.type->bytes_each;
            bytes = bytes < 0 || each < 0 ? AvroType::VARIABLE : std::min(bytes + each, MOST_BYTES);
            made->fields.push_back(std::move(of));
        }
        made->bytes_each = bytes;
        return made;
    }

    static void read_logical(AvroType &type, const std::string &logical, const JsonValue &given) {
        static const std::map<std::string, std::pair<AvroType::Logical, TimeUnit>> KNOWN = {
            {"date", {AvroType::date, {86'400'000, 1}}},
            {"timestamp-millis", {AvroType::timestamp, {1, 1}}},
            {"timestamp-micros", {AvroType::timestamp, {1, 1000}}},
            {"timestamp-nanos", {AvroType::timestamp, {1, 1'000'000}}},
            {"time-millis", {AvroType::time, {1, 1}}},
            {"time-micros", {AvroType::time, {1, 1000}}},
            {"local-timestamp-millis", {AvroType::time, {1, 1}}},
            {"local-timestamp-micros", {AvroType::time, {1, 1000}}},
            {"local-timestamp-nanos", {AvroType::time, {1, 1'000'000}}},
            {"decimal", {AvroType::decimal, {1, 1}}},
            {"uuid", {AvroType::uuid, {1, 1}}}};
        const auto found = KNOWN.find(logical);
        if (found == KNOWN.end()) return;
        type.logical = found->second.first;
        type.logical_name = logical;
        type.unit = found->second.second;
        if (const JsonValue *scale = given.find("scale")) type.scale = static_cast<u32>(scale->as_size());
    }

    std::deque<AvroType> types_;
    std::map<std::string, AvroType *> named_;
    const AvroType *row_ = nullptr;
    bool many_ = false;
};

}  // namespace st
