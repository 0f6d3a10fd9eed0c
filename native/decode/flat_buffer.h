// FlatBuffers (https://flatbuffers.dev/internals) as Arrow's metadata are: tables and vectors at offsets, each of which
// is checked. What does not lie within the bytes reads as if it were not there, and is_bad() tells.
#pragma once
#include <string_view>

#include "decode/cell_type.h"

namespace st {

class FlatBuffer {
  public:
    struct Table {
        u64 at = 0, fields = 0;   // 0: not there
        u32 field_count = 0;
        explicit operator bool() const { return at != 0; }
    };
    struct Vector {
        u64 at = 0;
        u32 count = 0;
    };

    FlatBuffer() = default;
    FlatBuffer(const char *bytes, u64 size) : bytes_(bytes), size_(size) {}

    bool is_bad() const { return is_bad_; }

    Table root() { return table_at(follow(0)); }

    // A field by its number in the schema.
    template <class T>
    T scalar(Table of, u32 field, T otherwise) {
        const u64 at = place(of, field);
        return at ? load<T>(at, otherwise) : otherwise;
    }
    Table table(Table of, u32 field) {
        const u64 at = place(of, field);
        return at ? table_at(follow(at)) : Table();
    }
    Vector vector(Table of, u32 field, u64 element_bytes) {
        const u64 place_at = place(of, field);
        if (!place_at) return {};
        const u64 at = follow(place_at);
        const u32 count = load<u32>(at, 0);
        if (is_bad_ || count * element_bytes > size_ - at - 4) return fail(), Vector();
        return {at + 4, count};
    }
    std::string_view text(Table of, u32 field) {
        const Vector letters = vector(of, field, 1);
        return {letters.count ? bytes_ + letters.at : "", letters.count};
    }
    Table table_of(Vector vector, u32 index) { return table_at(follow(vector.at + u64{4} * index)); }
    // Of a vector of structs of i64.
    i64 number_of(Vector vector, u64 index) { return load<i64>(vector.at + 8 * index, 0); }

  private:
    void fail() { is_bad_ = true; }

    template <class T>
    T load(u64 at, T otherwise) {
        if (at > size_ || sizeof(T) > size_ - at) return fail(), otherwise;
        return load_little<T>(bytes_ + at);
    }

    // Where the offset at `at` leads: forward, never to itself.
    u64 follow(u64 at) {
        const u32 offset = load<u32>(at, 0);
        if (offset == 0 || offset > size_ - std::min(at, size_)) return fail(), 0;
        return at + offset;
    }

    // Tables may lie within each other any number of times: no more are looked at than there are bytes.
    Table table_at(u64 at) {
        if (is_bad_ || ++looked_at_ > size_) return fail(), Table();
        const i64 fields = static_cast<i64>(at) - load<i32>(at, 0);
        if (is_bad_ || fields < 0) return fail(), Table();
        const u64 begin = static_cast<u64>(fields);
        const u32 bytes = load<u16>(begin, 0);
        if (is_bad_ || bytes < 4 || bytes > size_ - begin) return fail(), Table();
        return {at, begin + 4, (bytes - 4) / 2};
    }

    // Where a field stands; 0: nowhere.
    u64 place(Table of, u32 field) {
        if (!of || field >= of.field_count) return 0;
        const u32 offset = load<u16>(of.fields + u64{2} * field, 0);
        return offset ? of.at + offset : 0;
    }

    const char *bytes_ = nullptr;
    u64 size_ = 0, looked_at_ = 0;
    bool is_bad_ = false;
};

}  // namespace st
