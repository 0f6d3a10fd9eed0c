// The bytes of an Avro datum: numbers of variable length, lengths, counts of blocks, each checked against the end.
#pragma once
#include <string>

#include "base/types.h"

namespace st {

class AvroBytes {
  public:
    void load(const char *bytes, u64 size) { begin_ = bytes, end_ = bytes + size; }
    const char *begin() const { return begin_; }
    const char *end() const { return end_; }
    void end_at(const char *end) { end_ = end; }   // of a part of them
    u64 left(const char *p) const { return static_cast<u64>(end_ - p); }
    const std::string &problem() const { return problem_; }

    [[gnu::cold]] const char *broken(const char *p, std::string what) {
        problem_ = std::move(what) + " at byte " + std::to_string(p - begin_);
        return nullptr;
    }
    [[gnu::cold]] const char *cut(const char *p) { return broken(p, "the record ends inside the value"); }

    // What follows the number; nullptr with problem() where there is none.
    [[gnu::always_inline]] const char *number(const char *p, i64 &value) {
        if (p < end_ && static_cast<u8>(*p) < 0x80) [[likely]] {
            const u64 raw = static_cast<u8>(*p);
            value = static_cast<i64>(raw >> 1) ^ -static_cast<i64>(raw & 1);
            return p + 1;
        }
        return long_number(p, value);
    }

    // A length and where its bytes begin; they are all there.
    [[gnu::always_inline]] const char *length(const char *p, u64 &size) {
        i64 value;
        const char *const start = p;
        p = number(p, value);
        if (!p) return nullptr;
        size = static_cast<u64>(value);
        if (size > left(p)) [[unlikely]]   // also one below 0
            return broken(start, "a length of " + std::to_string(value) + ", but " + std::to_string(left(p)) +
                                     " bytes follow");
        return p;
    }

    // The branch of a union of so many.
    const char *branch(const char *p, u64 branches, u64 &value) {
        i64 given;
        const char *const start = p;
        if (!(p = number(p, given))) return nullptr;
        value = static_cast<u64>(given);
        if (value < branches) return p;
        return broken(start, "expected a union branch below " + std::to_string(branches) + ", got " +
                                 std::to_string(given));
    }

    // A block's head: how many elements, 0 at the array's end; `bytes` where it says how many they take, else 0.
    const char *block(const char *p, u64 &count, u64 &bytes, bool &sized) {
        i64 value;
        const char *const start = p;
        p = number(p, value);
        if (!p) return nullptr;
        sized = value < 0;
        count = sized ? 0 - static_cast<u64>(value) : static_cast<u64>(value);
        bytes = 0;
        if (sized && !(p = length(p, bytes))) return nullptr;
        return sized || count <= left(p) ? p : claim(start, p, count);
    }

    [[gnu::cold]] const char *claim(const char *start, const char *p, u64 count) {
        return broken(start, "a block claims " + std::to_string(count) + " elements, but " + std::to_string(left(p)) +
                                 " bytes follow");
    }

  private:
    const char *long_number(const char *const start, i64 &value) {
        u64 raw = 0;
        for (u32 i = 0; i < 10; ++i) {
            if (start + i >= end_) return broken(start, "the record ends inside a number");
            const u64 byte = static_cast<u8>(start[i]);
            if (i == 9 && byte > 1) break;
            raw |= (byte & 0x7f) << 7 * i;
            if (byte >= 0x80) continue;
            value = static_cast<i64>(raw >> 1) ^ -static_cast<i64>(raw & 1);
            return start + i + 1;
        }
        return broken(start, "a number of more than 64 bits");
    }

    const char *begin_ = nullptr, *end_ = nullptr;
    std::string problem_;
};

}  // namespace st
