// What a reader's Avro type takes of a writer's: the specification's promotions, and whatever an enum or a union has
// gained. https://avro.apache.org/docs/1.12.0/specification/#schema-resolution
#pragma once
#include "decode/avro_schema.h"

namespace st {

inline std::string avro_words(const AvroType &type) {
    if (type.logical == AvroType::decimal) return "a decimal of scale " + std::to_string(type.scale);
    if (type.kind == AvroType::fixed) return std::to_string(type.size) + " bytes";
    return type.logical == AvroType::none ? type.article() : type.logical_name;
}

inline bool avro_promotes(const AvroType &writer, const AvroType &reader) {
    using Type = AvroType;
    const bool is_time = writer.logical != Type::none && writer.logical != Type::uuid;
    const bool was_time = reader.logical != Type::none && reader.logical != Type::uuid;
    if ((is_time || was_time) && writer.logical_name != reader.logical_name) return false;
    if (writer.logical == Type::decimal) return writer.scale == reader.scale;
    if (writer.kind == reader.kind) return writer.kind != Type::fixed || writer.size == reader.size;
    switch (writer.kind) {
        case Type::int_: return reader.kind >= Type::long_ && reader.kind <= Type::double_;
        case Type::long_: return reader.kind == Type::float_ || reader.kind == Type::double_;
        case Type::float_: return reader.kind == Type::double_;
        case Type::enumeration: return reader.kind == Type::string;
        case Type::fixed: return reader.kind == Type::string && writer.logical == Type::uuid;
        default: return false;
    }
}

// "" where the reader takes all of it. Null is a missing cell to any.
inline std::string avro_difference(const AvroType &writer, const AvroType &reader) {
    if (writer.kind == AvroType::null) return "";
    if (writer.kind == AvroType::choice) {
        for (const AvroType *branch : writer.inner)
            if (std::string found = avro_difference(*branch, reader); !found.empty()) return found;
        return "";
    }
    if (reader.kind == AvroType::choice) {
        std::string expected;
        for (const AvroType *branch : reader.inner) {
            if (avro_promotes(writer, *branch)) return "";
            if (branch->kind != AvroType::null) expected += (expected.empty() ? "" : " or ") + avro_words(*branch);
        }
        return "expected " + expected + ", got " + avro_words(writer);
    }
    return avro_promotes(writer, reader) ? "" : "expected " + avro_words(reader) + ", got " + avro_words(writer);
}

}  // namespace st
