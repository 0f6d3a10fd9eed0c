// Dead letters on their way from ingest (the one writer) to the coordinator (the one reader): a byte ring in the arena,
// where they stay until they are published, so that the ring is the bound of what a flood of bad records takes.
// An entry is a DeadLetterHead, then per range of rows {i64 from, i64 to, u32 remainder, u32 path bytes, u32 reason
// bytes, path, reason}, then the key, per header {u32 name bytes, u32 value bytes, name, value}, and the record's bytes
// (none when they go by reference).
#pragma once
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "ring/arena.h"
#include "ring/dead_rows.h"

namespace st {

struct DeadLetterHead {
    u64 entry_bytes;       // with this head
    i64 round, slot, offset;
    i64 rows_left_out;     // dead rows of this pass that found no place in the entry
    i32 partition;
    u32 ranges;
    u32 key_bytes, value_bytes;
    u32 header_bytes;      // of all headers that are here
    u32 headers_left_out;
    u64 record_bytes;      // of the record, whether its bytes are here or not
};
static_assert(sizeof(DeadLetterHead) == 72);

struct DeadLetterHeader {
    const char *name;
    const u8 *value;
    u64 size;
};

constexpr u64 DEAD_LETTER_VALUE_LIMIT = 512 * 1024;   // longer records go by reference
constexpr u64 DEAD_LETTER_KEY_LIMIT = 4096;           // longer keys are left out
constexpr u64 DEAD_LETTER_HEADERS_LIMIT = 32 * 1024;  // of all of them; those that find no place are counted
constexpr u64 DEAD_LETTER_ROWS_LIMIT = 256 * 1024;    // twice what a letter's header shows: the first tell the story
constexpr u64 DEAD_LETTER_TEXT_LIMIT = 2048;          // of a path or a reason: twice what a letter shows
// What one round may bring: it closes at so many letters or bytes, of which the last entry may pass the bound.
constexpr i64 ROUND_LETTERS = 4'000;
constexpr u64 ROUND_LETTER_BYTES = u64{2} << 20;
constexpr u64 ROUND_LETTER_BYTES_AT_MOST = ROUND_LETTER_BYTES + (u64{1} << 20);
static_assert(sizeof(DeadLetterHead) + DEAD_LETTER_ROWS_LIMIT + 28 + 2 * DEAD_LETTER_TEXT_LIMIT +
                  DEAD_LETTER_KEY_LIMIT + DEAD_LETTER_HEADERS_LIMIT + DEAD_LETTER_VALUE_LIMIT + 8 <= (u64{1} << 20));
constexpr i64 UNPUBLISHED_LETTERS = 20'000;           // ingest opens no round above it: a publication is no longer than
                                                      // this and a round, however small the letters

class DeadLetterWriter {
  public:
    explicit DeadLetterWriter(Arena &arena) : arena_(arena) {}

    // Whether another round's letters find no place: too many are unpublished.
    bool full() const {
        const Control &control = arena_.control();
        const i64 letters = control.ingest.dead_letters_written.load() -
                            control.coordinator.dead_letters_published.load();
        return letters >= UNPUBLISHED_LETTERS || used() + ROUND_LETTER_BYTES_AT_MOST > arena_.dead_letter_bytes();
    }

    void begin_round() { round_letters_ = 0; round_bytes_ = 0; last_partition_ = -1; }
    bool round_full() const { return round_letters_ >= ROUND_LETTERS || round_bytes_ >= ROUND_LETTER_BYTES; }

    // There is room: a round is begun only while not full(), and closed when round_full().
    void write(DeadLetterHead head, const std::vector<DeadRows> &rows, const u8 *key,
               const std::vector<DeadLetterHeader> &headers, const u8 *value) {
        buffer_.assign(sizeof head, 0);
        for (const DeadRows &row : rows) {
            if (buffer_.size() > DEAD_LETTER_ROWS_LIMIT) {
                head.rows_left_out += row.row_to - row.row_from;
                continue;
            }
            const u64 path_bytes = std::min(row.path.size(), DEAD_LETTER_TEXT_LIMIT);
            const u64 reason_bytes = std::min(row.reason.size(), DEAD_LETTER_TEXT_LIMIT);
            put(row.row_from); put(row.row_to);
            put<u32>(row.remainder); put(static_cast<u32>(path_bytes)); put(static_cast<u32>(reason_bytes));
            append(row.path.data(), path_bytes);
            append(row.reason.data(), reason_bytes);
            ++head.ranges;
        }
        const bool again = last_partition_ == head.partition && last_offset_ == head.offset;   // in the same round
        if (again || value == nullptr || head.record_bytes > DEAD_LETTER_VALUE_LIMIT) head.value_bytes = 0;
        else head.value_bytes = static_cast<u32>(head.record_bytes);
        if (again || key == nullptr || head.key_bytes > DEAD_LETTER_KEY_LIMIT) head.key_bytes = 0;
        last_partition_ = head.partition;
        last_offset_ = head.offset;
        append(key, head.key_bytes);
        if (!again) put_headers(headers, head);
        append(value, head.value_bytes);
        buffer_.resize((buffer_.size() + 7) & ~u64{7});
        head.entry_bytes = buffer_.size();
        std::memcpy(buffer_.data(), &head, sizeof head);
        copy_in();
    }

  private:
    template <class T> void put(T value) { append(&value, sizeof value); }
    void append(const void *bytes, u64 size) {
        const u8 *first = static_cast<const u8 *>(bytes);
        if (size) buffer_.insert(buffer_.end(), first, first + size);
    }

    void put_headers(const std::vector<DeadLetterHeader> &headers, DeadLetterHead &head) {
        for (const DeadLetterHeader &header : headers) {
            const u64 name_bytes = std::strlen(header.name), bytes = 8 + name_bytes + header.size;
            if (head.header_bytes + bytes > DEAD_LETTER_HEADERS_LIMIT) {
                ++head.headers_left_out;
                continue;
            }
            put(static_cast<u32>(name_bytes)); put(static_cast<u32>(header.size));
            append(header.name, name_bytes);
            append(header.value, header.size);
            head.header_bytes += static_cast<u32>(bytes);
        }
    }

    u64 used() const {
        const Control &control = arena_.control();
        return static_cast<u64>(control.ingest.dead_letter_bytes_written.load() -
                                control.coordinator.dead_letter_bytes_published.load());
    }

    void copy_in() {
        IngestWords &words = arena_.control().ingest;
        const u64 capacity = arena_.dead_letter_bytes(), size = buffer_.size();
        if (used() + size > capacity) throw std::logic_error("dead letters: a round has passed its bound");
        const i64 written = words.dead_letter_bytes_written.load();
        const u64 at = static_cast<u64>(written) % capacity, first = std::min(size, capacity - at);
        std::memcpy(arena_.dead_letters() + at, buffer_.data(), first);
        std::memcpy(arena_.dead_letters(), buffer_.data() + first, size - first);
        words.dead_letter_bytes_written.store(written + static_cast<i64>(size));
        words.dead_letters_written.store(words.dead_letters_written.load() + 1);
        ++round_letters_;
        round_bytes_ += size;
    }

    Arena &arena_;
    std::vector<u8> buffer_;
    i64 round_letters_ = 0, last_offset_ = -1;
    u64 round_bytes_ = 0;
    i32 last_partition_ = -1;
};

class DeadLetterReader {
  public:
    explicit DeadLetterReader(const Arena &arena) : arena_(arena) {}

    // The unpublished entries of the rounds up to `last_round`, in the order they were written, and their number.
    std::vector<u8> up_to(i64 last_round, i64 &entries) const {
        const i64 begin = arena_.control().coordinator.dead_letter_bytes_published.load();
        const i64 written = arena_.control().ingest.dead_letter_bytes_written.load();
        i64 end = begin;
        for (entries = 0; end < written; ++entries) {
            DeadLetterHead head;
            copy_out(reinterpret_cast<u8 *>(&head), end, sizeof head);
            if (head.round > last_round) break;
            end += static_cast<i64>(head.entry_bytes);
        }
        std::vector<u8> bytes(static_cast<u64>(end - begin));
        copy_out(bytes.data(), begin, bytes.size());
        return bytes;
    }

  private:
    void copy_out(u8 *out, i64 from, u64 size) const {
        const u64 capacity = arena_.dead_letter_bytes(), at = static_cast<u64>(from) % capacity;
        const u64 first = std::min(size, capacity - at);
        std::memcpy(out, arena_.dead_letters() + at, first);
        std::memcpy(out + first, arena_.dead_letters(), size - first);
    }

    const Arena &arena_;
};

}  // namespace st
