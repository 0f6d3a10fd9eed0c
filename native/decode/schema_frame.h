// Where a record says what schema it is of, as registries' serializers write it: in a header of its message, and then
// the value is nothing but the datum, else in the value's first bytes. An empty header is as none.
#pragma once
#include <string>

#include "base/schema_name.h"
#include "source/record.h"

namespace st {

struct SchemaFrame {
    static constexpr const char *HEADER = "__value_schema_id";

    const char *bytes;   // that begin with the name, of a header or the value
    u64 size;
    bool in_header;

    static SchemaFrame of(const RecordView &record) {
        if (record.header) {
            const DeadLetterHeader found = record.header(record.handle, HEADER);
            if (found.size) return {reinterpret_cast<const char *>(found.value), found.size, true};
        }
        return {reinterpret_cast<const char *>(record.value), record.size, false};
    }

    const char *end() const { return bytes + size; }

    // What follows the name; nullptr: there is none, as problem() says.
    const char *read(SchemaName &name) const {
        const u64 taken = name.read(bytes, size);
        return taken ? bytes + taken : nullptr;
    }
    // As read(), where nothing may follow in a header.
    const char *read_all(SchemaName &name) const {
        const char *const behind = read(name);
        return in_header && behind != end() ? nullptr : behind;
    }

    std::string problem() const {
        const u8 form = size ? static_cast<u8>(bytes[0]) : 0;
        return told("expected a registry's frame (0 and a schema id, or 1 and a GUID), got " +
                    (form > 1 ? "byte " + std::to_string(form) : std::to_string(size) + " bytes"));
    }
    std::string told(std::string what) const { return in_header ? std::string(HEADER) + ": " + what : what; }

    // The datum, from `behind` the frame on.
    const char *datum(const RecordView &record, const char *behind) const {
        return in_header ? reinterpret_cast<const char *>(record.value) : behind;
    }
};

}  // namespace st
