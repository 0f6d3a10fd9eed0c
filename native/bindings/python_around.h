// What stands around a record in its message, as Python gives it.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "source/record.h"

namespace st {

struct PythonAround {
    i32 partition = 0;
    i64 offset = 0, timestamp_ms = -1;
    std::optional<std::string> key;
    std::vector<std::pair<std::string, std::optional<std::string>>> headers;

    // Of a record; in place as long as this is. Without a message nothing stands around it.
    static RecordView view(const void *value, u64 size, const PythonAround *around) {
        RecordView record{.value = static_cast<const u8 *>(value), .size = size};
        if (!around) return record;
        if (around->key) {
            record.key = reinterpret_cast<const u8 *>(around->key->data());
            record.key_size = around->key->size();
        }
        record.partition = around->partition;
        record.offset = around->offset;
        record.timestamp_ms = around->timestamp_ms;
        record.handle = around;
        record.header = header;
        return record;
    }

  private:
    static DeadLetterHeader header(const void *handle, const char *name) {
        DeadLetterHeader found{name, nullptr, 0};
        for (const auto &[given, value] : static_cast<const PythonAround *>(handle)->headers)
            if (given == name)
                found = {name, value ? reinterpret_cast<const u8 *>(value->data()) : nullptr,
                         value ? value->size() : 0};
        return found;
    }
};

}  // namespace st
