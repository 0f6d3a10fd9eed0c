// A record, and what stands around it in its message.
#pragma once
#include <vector>

#include "ring/dead_letters.h"

namespace st {

// In place until its source's release().
struct RecordView {
    const u8 *value = nullptr;   // null: a tombstone
    u64 size = 0;
    const u8 *key = nullptr;
    u64 key_size = 0;
    i32 partition = 0;
    bool hole = false;           // no record: the partition has none before `offset` (control records, a range's end)
    i64 offset = 0;
    i64 span = 1;                // offsets it takes up: in a file each row has one
    i64 timestamp_ms = -1;       // -1: none
    const void *handle = nullptr;
    std::vector<DeadLetterHeader> (*headers)(const void *handle) = nullptr;   // null: a source without headers
    // The last header of a name; its value is null where there is none.
    DeadLetterHeader (*header)(const void *handle, const char *name) = nullptr;
};

}  // namespace st
