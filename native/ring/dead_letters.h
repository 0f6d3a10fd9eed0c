// The dead letters of a slot, gathered until it has its number.
// An entry is a DeadLetterHead, then per range of rows DeadLetterRows, path and reason, then the key, per header
// DeadLetterHeaderSizes, name and value, and the record's bytes (none when they go by reference). Between them stand
// the schemas that the slot's records name: entries of the partition SCHEMA_ENTRY, with the schema's name as key, its
// text in the headers' place and why there is none as value, those two at the name's first entry of a run alone
// (record_bytes is 1 there).
#pragma once
#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/schema_name.h"
#include "base/types.h"
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
    u32 around_left_out;
    u64 record_bytes;      // of the record, whether its bytes are here or not
};
static_assert(sizeof(DeadLetterHead) == 72);

struct DeadLetterRows {
    i64 row_from, row_to;
    u32 path_bytes, reason_bytes;
};

struct DeadLetterHeaderSizes {
    u32 name_bytes, value_bytes;
};

struct DeadLetterHeader {
    const char *name;
    const u8 *value;
    u64 size;
};

constexpr i32 SCHEMA_ENTRY = -2;
constexpr u64 SCHEMA_TEXT_LIMIT = 256 * 1024;         // Python refuses longer ones
// A record of which not all finds its place goes by reference.
constexpr u64 DEAD_LETTER_VALUE_LIMIT = 512 * 1024;
constexpr u64 DEAD_LETTER_KEY_LIMIT = 4096;
constexpr u64 DEAD_LETTER_HEADERS_LIMIT = 32 * 1024;  // of all of them; those that find no place are counted
constexpr u64 DEAD_LETTER_ROWS_LIMIT = 256 * 1024;    // twice what a letter's header shows: the first tell the story
constexpr u64 DEAD_LETTER_TEXT_LIMIT = 2048;          // of a path or a reason: twice what a letter shows
// What one round may bring: it closes at so many letters or bytes. The slot that passes the bound has no more than the
// bound of its own, but for its last entry.
constexpr i64 ROUND_LETTERS = 4'000;
constexpr u64 ROUND_LETTER_BYTES = u64{2} << 20;
constexpr u64 ROUND_LETTER_BYTES_AT_MOST = 2 * ROUND_LETTER_BYTES + (u64{1} << 20) + 2 * SCHEMA_TEXT_LIMIT;
static_assert(sizeof(DeadLetterHead) + DEAD_LETTER_ROWS_LIMIT + sizeof(DeadLetterRows) + 2 * DEAD_LETTER_TEXT_LIMIT +
                  DEAD_LETTER_KEY_LIMIT + DEAD_LETTER_HEADERS_LIMIT + DEAD_LETTER_VALUE_LIMIT + 8 <= (u64{1} << 20));
constexpr i64 UNPUBLISHED_LETTERS = 20'000;           // ingest opens no round above it: a publication is no longer than
                                                      // this and a round, however small the letters

class DeadLetters {
  public:
    // One on its way: `head` but for its round and slot, the rows', and what is of the record, in place until clear().
    struct Entry {
        DeadLetterHead head;
        const u8 *rows, *record;
        u64 rows_bytes, record_bytes;
    };

    bool empty() const { return entries_.empty(); }
    i64 count() const { return static_cast<i64>(entries_.size()); }
    u64 bytes() const { return bytes_.size() + entries_.size() * sizeof(DeadLetterHead); }
    void clear() { entries_.clear(), bytes_.clear(), schemas_.clear(); }

    void add(DeadLetterHead head, const std::vector<DeadRows> &rows, const u8 *key,
             const std::vector<DeadLetterHeader> &headers, const u8 *value) {
        const u64 begin = bytes_.size();
        put_rows(rows, head, begin);
        const u64 record = bytes_.size();
        const bool fits = value != nullptr && head.record_bytes <= DEAD_LETTER_VALUE_LIMIT;
        if (key == nullptr) head.key_bytes = 0;
        if (head.key_bytes > DEAD_LETTER_KEY_LIMIT) head.key_bytes = 0, ++head.around_left_out;
        append(key, head.key_bytes);
        put_headers(headers, head);
        head.value_bytes = fits && head.around_left_out == 0 ? static_cast<u32>(head.record_bytes) : 0;
        append(value, head.value_bytes);
        entries_.push_back({head, begin, record, bytes_.size()});
    }

    // That a record names this schema: its text, or why there is none.
    void add_schema(const SchemaName &schema, const std::string &text, const std::string &refusal) {
        if (!schemas_.insert(schema).second) return;
        const u64 begin = bytes_.size();
        const std::string name = schema.text();
        DeadLetterHead head{};
        head.partition = SCHEMA_ENTRY;
        head.record_bytes = 1;
        head.key_bytes = static_cast<u32>(name.size());
        head.header_bytes = static_cast<u32>(std::min<u64>(text.size(), SCHEMA_TEXT_LIMIT));
        head.value_bytes = static_cast<u32>(std::min<u64>(refusal.size(), DEAD_LETTER_TEXT_LIMIT));
        append(name.data(), head.key_bytes);
        append(text.data(), head.header_bytes);
        append(refusal.data(), head.value_bytes);
        entries_.push_back({head, begin, begin, bytes_.size()});
    }

    Entry at(i64 index) const {
        const Place &place = entries_[static_cast<std::size_t>(index)];
        return {place.head, bytes_.data() + place.begin, bytes_.data() + place.record, place.record - place.begin,
                place.end - place.record};
    }

  private:
    struct Place {
        DeadLetterHead head;
        u64 begin, record, end;   // in bytes_: of the rows, of what is of the record, behind it
    };

    template <class T> void put(T value) { append(&value, sizeof value); }
    void append(const void *bytes, u64 size) {
        const u8 *first = static_cast<const u8 *>(bytes);
        if (size) bytes_.insert(bytes_.end(), first, first + size);
    }

    void put_rows(const std::vector<DeadRows> &rows, DeadLetterHead &head, u64 begin) {
        for (const DeadRows &row : rows) {
            if (bytes_.size() - begin > DEAD_LETTER_ROWS_LIMIT) {
                head.rows_left_out += row.row_to - row.row_from;
                continue;
            }
            const u64 path_bytes = std::min(row.path.size(), DEAD_LETTER_TEXT_LIMIT);
            const u64 reason_bytes = std::min(row.reason.size(), DEAD_LETTER_TEXT_LIMIT);
            put(DeadLetterRows{row.row_from, row.row_to, static_cast<u32>(path_bytes), static_cast<u32>(reason_bytes)});
            append(row.path.data(), path_bytes);
            append(row.reason.data(), reason_bytes);
            ++head.ranges;
        }
    }

    void put_headers(const std::vector<DeadLetterHeader> &headers, DeadLetterHead &head) {
        for (const DeadLetterHeader &header : headers) {
            const u64 name_bytes = std::strlen(header.name), value_bytes = header.size;
            const u64 bytes = sizeof(DeadLetterHeaderSizes) + name_bytes + value_bytes;
            if (head.header_bytes + bytes > DEAD_LETTER_HEADERS_LIMIT) {
                ++head.around_left_out;
                continue;
            }
            put(DeadLetterHeaderSizes{static_cast<u32>(name_bytes), static_cast<u32>(value_bytes)});
            append(header.name, name_bytes);
            append(header.value, header.size);
            head.header_bytes += static_cast<u32>(bytes);
        }
    }

    std::vector<u8> bytes_;
    std::vector<Place> entries_;
    std::unordered_set<SchemaName, SchemaName::Hash> schemas_;
};

}  // namespace st
