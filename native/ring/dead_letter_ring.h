// Dead letters on their way from ingest (the one writer) to the coordinator (the one reader): a byte ring of entries in
// the arena, where they stay until they are published, so that the ring is the bound of what a flood of bad records
// takes.
#pragma once
#include <atomic>
#include <stdexcept>

#include "ring/arena.h"
#include "ring/dead_letters.h"

namespace st {

// One thread of ingest writes at a time; any of them may ask.
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

    void begin_round() { round_letters_ = 0; round_bytes_ = 0; last_partition_ = -1; round_schemas_.clear(); }
    bool round_full() const { return round_letters_ >= ROUND_LETTERS || round_bytes_ >= ROUND_LETTER_BYTES; }
    // Whether the round has all it may bring once those are written.
    bool round_full_with(const DeadLetters &letters) const {
        return round_letters_ + letters.count() >= ROUND_LETTERS ||
               round_bytes_ + letters.bytes() >= ROUND_LETTER_BYTES;
    }

    // There is room: a round is begun only while not full(), and closed when round_full().
    void write(const DeadLetters &letters, i64 round, i64 slot) {
        for (i64 index = 0; index < letters.count(); ++index) {
            DeadLetters::Entry entry = letters.at(index);
            DeadLetterHead &head = entry.head;
            head.round = round;
            head.slot = slot;
            if (head.partition == SCHEMA_ENTRY) {
                write_schema(entry);
                continue;
            }
            const bool again = last_partition_ == head.partition && last_offset_ == head.offset;   // in the same round
            if (again) {
                head.key_bytes = head.value_bytes = head.header_bytes = head.around_left_out = 0;
                entry.record_bytes = 0;
            }
            last_partition_ = head.partition;
            last_offset_ = head.offset;
            put(entry);
        }
    }

  private:
    // Once a round, and with what it is once a run.
    void write_schema(DeadLetters::Entry &entry) {
        constexpr u64 MOST_TOLD = 65'536;   // behind so many each is told anew
        DeadLetterHead &head = entry.head;
        const std::string name(reinterpret_cast<const char *>(entry.record), head.key_bytes);
        if (!round_schemas_.insert(name).second) return;
        if (told_schemas_.size() >= MOST_TOLD) told_schemas_.clear();
        if (!told_schemas_.insert(name).second) {
            head.header_bytes = head.value_bytes = 0;
            head.record_bytes = 0;
            entry.record_bytes = head.key_bytes;
        }
        put(entry);
    }

    u64 used() const {
        const Control &control = arena_.control();
        return static_cast<u64>(control.ingest.dead_letter_bytes_written.load() -
                                control.coordinator.dead_letter_bytes_published.load());
    }

    void put(DeadLetters::Entry &entry) {
        IngestWords &words = arena_.control().ingest;
        const u64 bytes = sizeof entry.head + entry.rows_bytes + entry.record_bytes, size = (bytes + 7) & ~u64{7};
        if (used() + size > arena_.dead_letter_bytes())
            throw std::logic_error("dead letters: a round has passed its bound");
        entry.head.entry_bytes = size;
        const i64 written = words.dead_letter_bytes_written.load();
        u64 at = static_cast<u64>(written);
        at = copy_in(at, &entry.head, sizeof entry.head);
        at = copy_in(at, entry.rows, entry.rows_bytes);
        at = copy_in(at, entry.record, entry.record_bytes);
        constexpr u8 behind[8] = {};
        copy_in(at, behind, size - bytes);
        words.dead_letter_bytes_written.store(written + static_cast<i64>(size));
        words.dead_letters_written.store(words.dead_letters_written.load() + 1);
        round_letters_ = round_letters_ + 1;
        round_bytes_ = round_bytes_ + size;
    }

    // Gives where what comes next belongs.
    u64 copy_in(u64 at, const void *bytes, u64 size) {
        const u64 capacity = arena_.dead_letter_bytes(), begin = at % capacity;
        const u64 first = std::min(size, capacity - begin);
        if (size == 0) return at;
        std::memcpy(arena_.dead_letters() + begin, bytes, first);
        std::memcpy(arena_.dead_letters(), static_cast<const u8 *>(bytes) + first, size - first);
        return at + size;
    }

    Arena &arena_;
    std::atomic<i64> round_letters_{0};
    std::atomic<u64> round_bytes_{0};
    i64 last_offset_ = -1;
    i32 last_partition_ = -1;
    std::unordered_set<std::string> round_schemas_, told_schemas_;   // by name: of the round; of the run
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

    // Those among them that are schemas.
    std::vector<u8> schemas_up_to(i64 last_round) const {
        const i64 written = arena_.control().ingest.dead_letter_bytes_written.load();
        std::vector<u8> bytes;
        for (i64 at = arena_.control().coordinator.dead_letter_bytes_published.load(); at < written;) {
            DeadLetterHead head;
            copy_out(reinterpret_cast<u8 *>(&head), at, sizeof head);
            if (head.round > last_round) break;
            if (head.partition == SCHEMA_ENTRY) {
                bytes.resize(bytes.size() + head.entry_bytes);
                copy_out(bytes.data() + bytes.size() - head.entry_bytes, at, head.entry_bytes);
            }
            at += static_cast<i64>(head.entry_bytes);
        }
        return bytes;
    }

  private:
    void copy_out(u8 *out, i64 from, u64 size) const {
        if (size == 0) return;   // and `out` may be nothing
        const u64 capacity = arena_.dead_letter_bytes(), at = static_cast<u64>(from) % capacity;
        const u64 first = std::min(size, capacity - at);
        std::memcpy(out, arena_.dead_letters() + at, first);
        std::memcpy(out + first, arena_.dead_letters(), size - first);
    }

    const Arena &arena_;
};

}  // namespace st
