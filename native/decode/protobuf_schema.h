// A Protobuf schema as the settings hold it: streamtrain/columns/formats/protobuf_schema.py has checked it.
#pragma once
#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>

#include "base/types.h"
#include "decode/json_value.h"

namespace st {

enum class ProtoWire : u8 { varint = 0, fixed64 = 1, length = 2, fixed32 = 5 };

enum class ProtoType : u8 {
    double_, float_, int32, int64, uint32, uint64, sint32, sint64, fixed32, fixed64, sfixed32, sfixed64, boolean, text,
    bytes, message, enumeration, timestamp
};

struct ProtoMessage;

struct ProtoEnum {
    std::map<i32, std::string> names;   // of two with one number the first
    std::map<std::string, i32> numbers;
};

struct ProtoField {
    std::string name;
    u32 number;
    ProtoType type;
    bool repeated, presence;           // presence: that it is not there can be told; else it is then 0, false or ""
    std::string oneof;                 // "": of none
    const ProtoMessage *message = nullptr;
    const ProtoEnum *enumeration = nullptr;

    ProtoWire wire() const {
        switch (type) {
            case ProtoType::double_:
            case ProtoType::fixed64:
            case ProtoType::sfixed64: return ProtoWire::fixed64;
            case ProtoType::float_:
            case ProtoType::fixed32:
            case ProtoType::sfixed32: return ProtoWire::fixed32;
            case ProtoType::text:
            case ProtoType::bytes:
            case ProtoType::message:
            case ProtoType::timestamp: return ProtoWire::length;
            default: return ProtoWire::varint;
        }
    }
    const char *article() const { return repeated ? "many values" : one(); }
    const char *one() const {
        static constexpr const char *NAMES[] = {
            "a double", "a float", "an int32", "an int64", "a uint32", "a uint64", "a sint32", "a sint64", "a fixed32",
            "a fixed64", "a sfixed32", "a sfixed64", "a bool", "a string", "bytes", "a message", "an enum",
            "a Timestamp"};
        return NAMES[static_cast<u8>(type)];
    }
};

struct ProtoMessage {
    std::string name;
    std::vector<i64> index;            // how a registry's frame names it; empty of one that its file imports
    std::vector<ProtoField> fields;    // by number

    std::string_view short_name() const { return std::string_view(name).substr(name.rfind('.') + 1); }
    // The field that holds many rows, of a message that has no other.
    const ProtoField *many() const {
        const bool is = fields.size() == 1 && fields[0].repeated && fields[0].type == ProtoType::message;
        return is ? &fields[0] : nullptr;
    }
    const ProtoMessage &row() const { return many() ? *many()->message : *this; }
    const ProtoField *field(u32 number) const {
        const auto found = std::ranges::lower_bound(fields, number, {}, &ProtoField::number);
        return found != fields.end() && found->number == number ? &*found : nullptr;
    }
};

class ProtoSchema {
  public:
    // Throws std::invalid_argument for what is no schema.
    explicit ProtoSchema(const std::string &text) {
        const JsonValue given = JsonDocument::read(text);
        for (const JsonValue &each : given.at("messages").items) {
            messages_.emplace_back();
            messages_.back().name = each.at("name").letters;
            named_[messages_.back().name] = &messages_.back();
        }
        for (const JsonValue &each : given.at("enums").items) {
            ProtoEnum &made = enums_[each.at("name").letters];
            for (const JsonValue &value : each.at("values").items) {
                const i32 number = static_cast<i32>(value.items.at(1).as_whole());
                made.names.emplace(number, value.items.at(0).letters);
                made.numbers.emplace(value.items.at(0).letters, number);
            }
        }
        for (u64 i = 0; i < messages_.size(); ++i) read(messages_[i], given.at("messages").items[i]);
        if (messages_.empty()) throw std::invalid_argument("expected a Protobuf message, got none");
    }

    ProtoSchema(const ProtoSchema &) = delete;   // its messages refer to each other

    // By its full name; "": the file's first. Throws std::invalid_argument where there is none.
    const ProtoMessage &message(const std::string &name) const {
        if (name.empty()) return messages_[0];
        const auto found = named_.find(name);
        if (found == named_.end()) throw std::invalid_argument("no Protobuf message is named " + name);
        return *found->second;
    }

    const ProtoMessage *at(const std::vector<i64> &index) const {
        const auto found = std::ranges::find(messages_, index, &ProtoMessage::index);
        return found == messages_.end() ? nullptr : &*found;
    }

  private:
    void read(ProtoMessage &message, const JsonValue &given) {
        if (const JsonValue *index = given.find("index"))
            for (const JsonValue &each : index->items) message.index.push_back(each.as_whole());
        for (const JsonValue &each : given.at("fields").items) {
            const auto flag = [&](const char *key) {
                const JsonValue *found = each.find(key);
                return found && found->flag;
            };
            ProtoField field{each.at("name").letters, static_cast<u32>(each.at("number").as_size()),
                             type_of(each.at("type").letters), flag("repeated"), flag("presence"), {}};
            if (const JsonValue *oneof = each.find("oneof")) field.oneof = oneof->letters;
            if (field.type == ProtoType::message) field.message = &this->message(each.at("of").letters);
            if (field.type == ProtoType::enumeration) field.enumeration = &enums_.at(each.at("of").letters);
            message.fields.push_back(std::move(field));
        }
        std::ranges::sort(message.fields, {}, &ProtoField::number);
    }

    static ProtoType type_of(const std::string &name) {
        static constexpr const char *NAMES[] = {"double", "float", "int32", "int64", "uint32", "uint64", "sint32",
                                                "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64", "bool",
                                                "string", "bytes", "message", "enum", "timestamp"};
        const auto found = std::ranges::find(NAMES, name);
        if (found == std::end(NAMES)) throw std::invalid_argument("no Protobuf type is named " + name);
        return static_cast<ProtoType>(found - NAMES);
    }

    std::deque<ProtoMessage> messages_;   // the file's own first
    std::map<std::string, const ProtoMessage *> named_;
    std::map<std::string, ProtoEnum> enums_;
};

}  // namespace st
