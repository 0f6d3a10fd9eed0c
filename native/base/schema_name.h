// What names a schema: the id that one registry has given it, or the GUID that it has in every registry.
#pragma once
#include <cstring>
#include <functional>
#include <string>

#include "base/types.h"

namespace st {

struct SchemaName {
    enum class Form : u64 { none, id, guid };
    static constexpr u64 ID_BYTES = 5, GUID_BYTES = 17;

    Form form = Form::none;
    u64 high = 0, low = 0;   // of a GUID as it is written; an id is `low`

    explicit operator bool() const { return form != Form::none; }
    bool operator==(const SchemaName &) const = default;

    // The name at the front of these bytes, as registries' serializers write it: 0 and an id of four bytes, or 1 and a
    // GUID of 16. How many bytes it takes; 0: there is none.
    u64 read(const char *bytes, u64 size) {
        if (size >= ID_BYTES && bytes[0] == 0) {
            *this = {Form::id, 0, __builtin_bswap32(load<u32>(bytes + 1))};
            return ID_BYTES;
        }
        if (size < GUID_BYTES || bytes[0] != 1) return 0;
        *this = {Form::guid, __builtin_bswap64(load<u64>(bytes + 1)), __builtin_bswap64(load<u64>(bytes + 9))};
        return GUID_BYTES;
    }

    // "7", or "0a1b2c3d-…" in small letters.
    std::string text() const {
        if (form != Form::guid) return std::to_string(low);
        std::string made;
        for (u32 digit = 0; digit < 32; ++digit) {
            if (digit == 8 || digit == 12 || digit == 16 || digit == 20) made += '-';
            made += "0123456789abcdef"[(digit < 16 ? high : low) >> (60 - 4 * (digit & 15)) & 15];
        }
        return made;
    }

    struct Hash {
        std::size_t operator()(const SchemaName &name) const {
            return std::hash<u64>()((name.high * 0x9e3779b97f4a7c15u) ^ name.low ^ static_cast<u64>(name.form) << 62);
        }
    };

  private:
    template <class T>
    static T load(const char *bytes) {
        T value;
        std::memcpy(&value, bytes, sizeof value);
        return value;
    }
};

}  // namespace st
