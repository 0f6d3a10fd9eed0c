// The shared memory of one host's run: a memfd that the supervisor makes and its children map. Holds the control words,
// round entries, slots and their results, the dead letter ring, the mean buffers and the workers' vectors.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "ring/words.h"
#include "ring/slot.h"
#include "state/rule.h"

namespace st {

struct ArenaSpec {
    u32 workers = 1;
    u32 averaging_frequency = 1;
    u32 slot_count = 24;
    u64 dead_letter_bytes = 16u << 20;
    SlotLayout slot;
    StateLayout state;
};

// Start position of a partition, written by the coordinator before READY.
struct StartPosition {
    i64 offset;
    i32 row;
    i32 partition;
};
static_assert(sizeof(StartPosition) == 16);

class Arena {
  public:
    // Makes the memfd and prefaults it. The descriptor is inheritable only by those it is passed to.
    static Arena create(const ArenaSpec &spec);
    static Arena attach(int descriptor);
    Arena(Arena &&other) noexcept;
    Arena &operator=(Arena &&other) = delete;
    ~Arena();

    int descriptor() const { return descriptor_; }
    u8 *base() const { return base_; }
    u64 bytes() const;
    u32 workers() const { return header().workers; }
    u32 averaging_frequency() const { return header().averaging_frequency; }
    u32 slot_count() const { return header().slot_count; }
    const SlotLayout &slot_layout() const { return slot_layout_; }
    const StateLayout &state_layout() const { return state_layout_; }

    Control &control() const { return at<Control>(header().control_offset); }
    RoundEntry &round_entry(i64 round) const {
        return (&at<RoundEntry>(header().rounds_offset))[static_cast<u64>(round) % header().round_entries];
    }
    SlotResult &slot_result(i64 slot) const {
        return (&at<SlotResult>(header().results_offset))[static_cast<u64>(slot) % header().slot_count];
    }
    // Where a slot lies: ingest fills buffers and numbers them when they are full, so it writes the table, at
    // [slot % slots], before the slot is there to be seen. As made, slot k lies in buffer k % slots.
    u32 &buffer_of(i64 slot) const {
        return (&at<u32>(header().buffers_offset))[static_cast<u64>(slot) % header().slot_count];
    }
    u8 *buffer(u32 buffer) const { return base_ + header().slots_offset + u64{buffer} * header().slot_bytes; }
    u8 *slot(i64 slot) const { return buffer(buffer_of(slot)); }
    SlotHeader &slot_header(i64 number) const { return *reinterpret_cast<SlotHeader *>(slot(number)); }
    Range *ranges_in(u8 *slot) const { return reinterpret_cast<Range *>(slot + slot_layout_.ranges_offset); }
    Range *slot_ranges(i64 number) const { return ranges_in(slot(number)); }

    u8 *mean(i32 buffer) const {
        return base_ + header().means_offset + static_cast<u64>(buffer) * header().mean_bytes;
    }
    // A worker's vector: a state (learned part trained in place, statistics part its share), then the base, which stays
    // readable for the worker's next life.
    u8 *vector(u32 worker) const { return base_ + header().vectors_offset + u64{worker} * header().vector_bytes; }
    WorkerMemory memory(u32 worker) const {
        u8 *state = vector(worker);
        return {worker, state, state + state_layout_.state_bytes, state + state_layout_.learned_bytes};
    }

    // Rows from which on a window closes: a round holds at most a quarter of them.
    i64 window_rows() const {
        return std::max(WINDOW_ROWS, 4 * i64{workers()} * averaging_frequency() * slot_layout_.row_capacity);
    }
    // The blocks `window.<score>` at the end of the lineage's window of that number.
    u8 *window(i64 number) const {
        return base_ + header().windows_offset + static_cast<u64>(number) % WINDOWS * window_bytes();
    }
    u64 window_bytes() const { return state_layout_.state_bytes - state_layout_.windows_offset; }

    u8 *dead_letters() const { return base_ + header().dead_letters_offset; }
    u64 dead_letter_bytes() const { return header().dead_letter_bytes; }

    void set_positions(const std::vector<StartPosition> &positions);
    std::vector<StartPosition> positions() const;

  private:
    struct Header {
        u64 magic;
        u32 workers, averaging_frequency, slot_count, round_entries;
        u32 row_capacity, range_capacity, slot_blocks, state_blocks, position_count, reserved;
        u64 slot_bytes, mean_bytes, vector_bytes, dead_letter_bytes;
        u64 description_offset, positions_offset, control_offset, rounds_offset, results_offset, buffers_offset,
            dead_letters_offset, slots_offset, means_offset, vectors_offset, windows_offset, bytes;
    };
    Arena(int descriptor, u8 *base);
    Header &header() const { return *reinterpret_cast<Header *>(base_); }
    template <class T> T &at(u64 offset) const { return *reinterpret_cast<T *>(base_ + offset); }
    void write_description(const ArenaSpec &spec);
    void read_description();
    void populate();   // makes the pages of all but dead letters and windows, most of which are never needed

    int descriptor_ = -1;
    u8 *base_ = nullptr;
    SlotLayout slot_layout_;
    StateLayout state_layout_;
};

}  // namespace st
