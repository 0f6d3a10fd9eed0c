// The bytes of a Protobuf message: numbers of variable length, tags, lengths, each checked against an end.
// https://protobuf.dev/programming-guides/encoding/
#pragma once
#include <string>

#include "decode/protobuf_schema.h"

namespace st {

class ProtoBytes {
  public:
    void load(const char *bytes, u64 size) { begin_ = bytes, end_ = bytes + size; }
    const char *end() const { return end_; }
    const std::string &problem() const { return problem_; }

    [[gnu::cold]] const char *broken(const char *p, std::string what) {
        problem_ = std::move(what) + " at byte " + std::to_string(p - begin_);
        return nullptr;
    }

    // What follows the number; nullptr with problem() where there is none.
    [[gnu::always_inline]] const char *varint(const char *p, const char *end, u64 &value) {
        if (p < end && static_cast<u8>(*p) < 0x80) [[likely]] {
            value = static_cast<u8>(*p);
            return p + 1;
        }
        return long_varint(p, end, value);
    }

    // A field's number and wire type, which may be none.
    const char *tag(const char *p, const char *end, u32 &number, u8 &wire) {
        u64 raw;
        const char *const start = p;
        if (!(p = varint(p, end, raw))) return nullptr;
        number = static_cast<u32>(raw >> 3);
        wire = raw & 7;
        if (raw >= 8 && raw >> 32 == 0) return p;
        return broken(start, "expected a field's number from 1 to 536870911, got " + std::to_string(raw >> 3));
    }

    // A length; that many bytes are there.
    [[gnu::always_inline]] const char *length(const char *p, const char *end, u64 &size) {
        const char *const start = p;
        if (!(p = varint(p, end, size))) return nullptr;
        if (size <= static_cast<u64>(end - p)) [[likely]] return p;
        return broken(start, "a length of " + std::to_string(size) + ", but " + std::to_string(end - p) +
                                 " bytes follow");
    }

    // Passes over a value.
    const char *skip(const char *p, const char *end, u8 wire) {
        u64 value;
        switch (wire) {
            case 0: return varint(p, end, value);
            case 1: return fixed(p, end, 8);
            case 2: return (p = length(p, end, value)) ? p + value : nullptr;
            case 5: return fixed(p, end, 4);
            case 3:
            case 4: return broken(p, "a group, which is not supported,");
            default: return broken(p, "expected wire type 0, 1, 2 or 5, got " + std::to_string(wire));
        }
    }

    // Seconds and nanoseconds of a google.protobuf.Timestamp; `good`: where they are given they are numbers.
    const char *timestamp(const char *p, const char *end, i64 &seconds, i64 &nanos, bool &good) {
        seconds = nanos = 0;
        good = true;
        while (p < end) {
            u32 number;
            u8 wire;
            u64 value = 0;
            if (!(p = tag(p, end, number, wire))) return nullptr;
            const char *const from = p;
            if (!(p = skip(p, end, wire))) return nullptr;
            if (number > 2) continue;
            if (wire == 0) varint(from, end, value), (number == 1 ? seconds : nanos) = static_cast<i64>(value);
            else good = false;
        }
        return p;
    }

    const char *fixed(const char *p, const char *end, u64 size) {
        return static_cast<u64>(end - p) >= size ? p + size : broken(p, "the record ends inside the value");
    }

  private:
    const char *long_varint(const char *const start, const char *end, u64 &value) {
        value = 0;
        for (u32 i = 0; i < 10; ++i) {
            if (start + i >= end) return broken(start, "the record ends inside a number");
            const u64 byte = static_cast<u8>(start[i]);
            if (i == 9 && byte > 1) break;
            value |= (byte & 0x7f) << 7 * i;
            if (byte < 0x80) return start + i + 1;
        }
        return broken(start, "a number of more than 64 bits");
    }

    const char *begin_ = nullptr, *end_ = nullptr;
    std::string problem_;
};

}  // namespace st
