// Writes FlatBuffers front to back: a table, then what its offsets lead to.
#pragma once
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/types.h"

namespace st {

class FlatWriter {
  public:
    struct Field {
        u32 number;   // in the schema
        u32 size;     // 4 of an offset, which is given later
        i64 value = 0;
    };
    // Where a table's fields stand, by number.
    using Places = std::vector<u64>;

    explicit FlatWriter(std::string &out) : out_(out) {
        out_.assign(4, '\0');
    }

    // A table that `from` leads to.
    Places table(u64 from, std::vector<Field> fields) {
        std::ranges::stable_sort(fields, std::ranges::greater(), &Field::size);
        u32 count = 0;
        for (const Field &field : fields) count = std::max(count, field.number + 1);
        const u64 heads = 4 + u64{2} * count;
        while ((out_.size() + heads) % 8 != 4) out_ += '\0';   // so that its first field may have eight bytes
        const u64 begin = out_.size(), at = begin + heads;
        out_.resize(at + 4);
        Places places(count, 0);
        for (const Field &field : fields) {
            places[field.number] = out_.size();
            put(begin + 4 + u64{2} * field.number, static_cast<u16>(out_.size() - at));
            out_.append(reinterpret_cast<const char *>(&field.value), field.size);
        }
        put(begin, static_cast<u16>(heads));
        put(begin + 2, static_cast<u16>(out_.size() - at));
        put(at, static_cast<u32>(heads));
        put(from, static_cast<u32>(at - from));
        return places;
    }

    // A vector that `from` leads to, of zeros; where its first element stands.
    u64 vector(u64 from, u64 count, u32 element_bytes) {
        while (out_.size() % 4 || (out_.size() + 4) % std::max(element_bytes, 4u) % 8) out_ += '\0';
        const u64 at = out_.size();
        put(from, static_cast<u32>(at - from));
        out_.resize(at + 4 + count * element_bytes);
        put(at, static_cast<u32>(count));
        return at + 4;
    }

    void text(u64 from, const std::string &letters) {
        const u64 at = vector(from, letters.size(), 1);
        std::memcpy(out_.data() + at, letters.data(), letters.size());
        out_ += '\0';
    }

    template <class T>
    void put(u64 at, T value) {
        std::memcpy(out_.data() + at, &value, sizeof value);
    }

  private:
    std::string &out_;
};

}  // namespace st
