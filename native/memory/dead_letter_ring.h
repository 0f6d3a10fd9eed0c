// Dead letters on their way from ingest (the one writer) to the coordinator (the one reader): a byte ring in the arena.
// An entry is a DeadLetterHead, then per range of rows {i64 from, i64 to, u32 remainder, u32 path bytes, u32 reason
// bytes, path, reason}, then the key and the record's bytes (none when they go by reference).
#pragma once
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "memory/arena.h"
#include "vectorize/decoder.h"

namespace st {

struct DeadLetterHead {
    u64 entry_bytes;       // with this head
    i64 round, slot, offset, timestamp_ms;
    i32 partition;
    u32 ranges;
    u32 key_bytes, value_bytes;
    u64 record_bytes;      // of the record, whether its bytes are here or not
};
static_assert(sizeof(DeadLetterHead) == 64);

constexpr u64 DEAD_LETTER_VALUE_LIMIT = 512 * 1024;   // longer records go by reference

class DeadLetterWriter {
  public:
    explicit DeadLetterWriter(Arena &arena) : arena_(arena) {}

    // False at the deadline: the coordinator has not made room.
    bool write(DeadLetterHead head, const std::vector<DeadRows> &rows, const u8 *key, const u8 *value,
               i64 deadline_ns) {
        buffer_.assign(sizeof head, 0);
        for (const DeadRows &row : rows) {
            if (buffer_.size() > arena_.dead_letter_bytes() / 4)
                break;   // thousands of bad rows: the first tell the story
            put(row.row_from); put(row.row_to);
            put<u32>(row.remainder); put(static_cast<u32>(row.path.size())); put(static_cast<u32>(row.reason.size()));
            append(row.path.data(), row.path.size());
            append(row.reason.data(), row.reason.size());
            ++head.ranges;
        }
        if (head.record_bytes > DEAD_LETTER_VALUE_LIMIT || value == nullptr) head.value_bytes = 0;
        else head.value_bytes = static_cast<u32>(head.record_bytes);
        if (key == nullptr || head.key_bytes > 4096) head.key_bytes = 0;
        append(key, head.key_bytes);
        append(value, head.value_bytes);
        buffer_.resize((buffer_.size() + 7) & ~u64{7});
        head.entry_bytes = buffer_.size();
        std::memcpy(buffer_.data(), &head, sizeof head);
        return copy_in(deadline_ns);
    }

  private:
    template <class T> void put(T value) { append(&value, sizeof value); }
    void append(const void *bytes, u64 size) {
        const u8 *first = static_cast<const u8 *>(bytes);
        if (size) buffer_.insert(buffer_.end(), first, first + size);
    }

    bool copy_in(i64 deadline_ns) {
        Control &control = arena_.control();
        u64 capacity = arena_.dead_letter_bytes();
        i64 written = control.ingest.dead_letters_written.load(), size = static_cast<i64>(buffer_.size());
        auto room = [&] {
            return written + size - control.coordinator.dead_letters_read.load() <= static_cast<i64>(capacity);
        };
        if (!control.coordinator_event.wait(deadline_ns, room)) return false;
        u64 at = static_cast<u64>(written) % capacity, first = std::min<u64>(buffer_.size(), capacity - at);
        std::memcpy(arena_.dead_letters() + at, buffer_.data(), first);
        std::memcpy(arena_.dead_letters(), buffer_.data() + first, buffer_.size() - first);
        control.ingest.dead_letters_written.store(written + size);
        control.ingest_event.ring();
        return true;
    }

    Arena &arena_;
    std::vector<u8> buffer_;
};

}  // namespace st
