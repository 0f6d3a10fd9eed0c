#include "ring/arena.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <new>
#include <stdexcept>
#include <utility>

namespace st {

namespace {

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23   // headers older than Linux 5.14
#endif

constexpr u64 MAGIC = 0x3130616e65726173;   // "sarena01"

struct StateBlockRecord {   // a StateBlockSpec as it lies in the arena
    char name[96], group[24], rule[24], rows_of[96], dtype[8];
    u64 axes;
    u64 shape[4];
};

[[noreturn]] void fail(const char *what) {
    throw std::runtime_error(std::string("arena: ") + what + ": " + std::strerror(errno));
}

template <u64 N>
void write_word(char (&to)[N], const std::string &word) {
    if (word.size() >= N) throw std::invalid_argument("arena: a state block's word is too long: " + word);
    std::memcpy(to, word.data(), word.size());
}

StateBlockRecord record_of(const StateBlock &block) {
    StateBlockRecord record{};
    write_word(record.name, block.name);
    write_word(record.group, block.group);
    write_word(record.rule, block.rule->name);
    write_word(record.rows_of, block.rows_of);
    write_word(record.dtype, name_of(block.dtype));
    record.axes = block.shape.size();
    if (record.axes > std::size(record.shape))
        throw std::invalid_argument("arena: a state block with too many axes: " + block.name);
    std::copy(block.shape.begin(), block.shape.end(), record.shape);
    return record;
}

}  // namespace

Arena::Arena(int descriptor, u8 *base) : descriptor_(descriptor), base_(base) {}

Arena::Arena(Arena &&other) noexcept
    : descriptor_(other.descriptor_), base_(other.base_), slot_layout_(std::move(other.slot_layout_)),
      state_layout_(std::move(other.state_layout_)) {
    other.descriptor_ = -1;
    other.base_ = nullptr;
}

Arena::~Arena() {
    if (base_) munmap(base_, bytes());
    if (descriptor_ >= 0) close(descriptor_);
}

u64 Arena::bytes() const { return header().bytes; }

Arena Arena::create(const ArenaSpec &spec) {
    if (spec.workers == 0 || spec.workers > MAX_WORKERS)
        throw std::invalid_argument("arena: too many workers, or none");
    if (spec.slot_count < 2 * spec.workers * spec.averaging_frequency)
        throw std::invalid_argument("arena: the ring must hold two rounds");
    Header header{};
    header.magic = MAGIC;
    header.workers = spec.workers;
    header.averaging_frequency = spec.averaging_frequency;
    header.slot_count = spec.slot_count;
    header.round_entries = spec.slot_count + 2;   // each round in flight has a slot, but for the one being opened
    header.row_capacity = spec.slot.row_capacity;
    header.range_capacity = spec.slot.range_capacity;
    header.slot_blocks = static_cast<u32>(spec.slot.blocks.size());
    header.state_blocks = static_cast<u32>(spec.state.blocks.size());
    header.slot_bytes = align64(spec.slot.slot_bytes);
    header.vector_bytes = spec.state.state_bytes + spec.state.statistics_bytes();
    header.mean_bytes = spec.state.mean_bytes(spec.workers);
    header.dead_letter_bytes = align64(spec.dead_letter_bytes);
    u64 at = align64(sizeof(Header));
    auto place = [&at](u64 bytes) { u64 offset = at; at += (bytes + 4095) & ~u64{4095}; return offset; };
    at = (at + 4095) & ~u64{4095};
    header.description_offset =
        place(header.slot_blocks * sizeof(Block) + header.state_blocks * sizeof(StateBlockRecord));
    header.positions_offset = place(u64{MAX_PARTITIONS} * sizeof(StartPosition));
    header.control_offset = place(sizeof(Control));
    header.rounds_offset = place(header.round_entries * sizeof(RoundEntry));
    header.results_offset = place(header.slot_count * sizeof(SlotResult));
    header.buffers_offset = place(header.slot_count * sizeof(u32));
    header.dead_letters_offset = place(header.dead_letter_bytes);
    header.windows_offset = place(WINDOWS * (spec.state.state_bytes - spec.state.windows_offset));
    header.slots_offset = place(header.slot_count * header.slot_bytes);
    header.means_offset = place(MEAN_BUFFERS * header.mean_bytes);
    header.vectors_offset = place(header.workers * header.vector_bytes);
    header.bytes = at;

    const int descriptor = memfd_create("streamtrain-arena", MFD_CLOEXEC);
    if (descriptor < 0) fail("memfd_create");
    if (ftruncate(descriptor, static_cast<off_t>(at)) != 0) { close(descriptor); fail("ftruncate"); }
    void *base = mmap(nullptr, at, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (base == MAP_FAILED) { close(descriptor); fail("mmap"); }
    Arena arena(descriptor, static_cast<u8 *>(base));
    arena.header() = header;
    arena.populate();
    arena.write_description(spec);
    arena.read_description();
    Control &control = arena.control();
    control.coordinator.pinned.store(-1);
    control.averager.finished_round.store(-1);
    control.ingest.final_round.store(-1);
    for (u32 w = 0; w < MAX_WORKERS; ++w) {
        control.workers[w].published_round.store(-1);
        control.workers[w].slot.store(-1);
    }
    for (u32 e = 0; e < header.round_entries; ++e) {
        arena.round_entry(e).round = -1;
        arena.round_entry(e).slot_count.store(-1);
    }
    for (u32 s = 0; s < header.slot_count; ++s) {
        arena.slot_result(s).slot = -1;
        arena.buffer_of(s) = s;
    }
    return arena;
}

Arena Arena::attach(int descriptor) {
    struct stat status;
    if (fstat(descriptor, &status) != 0) fail("fstat");
    void *base =
        mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (base == MAP_FAILED) fail("mmap");
    Arena arena(descriptor, static_cast<u8 *>(base));
    if (arena.header().magic != MAGIC) throw std::runtime_error("arena: the descriptor holds no arena of this build");
    arena.read_description();
    arena.populate();
    return arena;
}

void Arena::populate() {
    const Header &h = header();
    const u64 page = static_cast<u64>(sysconf(_SC_PAGESIZE));
    for (const auto &[begin, end] : {std::pair{u64{0}, h.dead_letters_offset}, std::pair{h.slots_offset, h.bytes}}) {
        const u64 from = begin / page * page;
        madvise(base_ + from, end - from, MADV_POPULATE_WRITE);  // Linux before 5.14 refuses: they come when touched
    }
}

void Arena::write_description(const ArenaSpec &spec) {
    Block *blocks = &at<Block>(header().description_offset);
    for (const Block &block : spec.slot.blocks) *blocks++ = block;
    auto *records = reinterpret_cast<StateBlockRecord *>(blocks);
    for (const StateBlock &block : spec.state.blocks) *records++ = record_of(block);
}

void Arena::read_description() {
    const Header &h = header();
    slot_layout_ = SlotLayout{};
    slot_layout_.row_capacity = h.row_capacity;
    slot_layout_.range_capacity = h.range_capacity;
    slot_layout_.slot_bytes = h.slot_bytes;
    const Block *blocks = &at<Block>(h.description_offset);
    slot_layout_.blocks.assign(blocks, blocks + h.slot_blocks);
    const auto *records = reinterpret_cast<const StateBlockRecord *>(blocks + h.slot_blocks);
    std::vector<StateBlockSpec> specs;
    for (u32 i = 0; i < h.state_blocks; ++i) {
        const StateBlockRecord &r = records[i];
        specs.push_back({r.name, r.group, r.rule, {r.shape, r.shape + r.axes}, r.rows_of, r.dtype});
    }
    state_layout_ = StateLayout::make(specs);
}

void Arena::set_positions(const std::vector<StartPosition> &positions) {
    if (positions.size() > u64{MAX_PARTITIONS}) throw std::invalid_argument("arena: too many partitions");
    std::ranges::copy(positions, &at<StartPosition>(header().positions_offset));   // of which there may be none
    header().position_count = static_cast<u32>(positions.size());
}

std::vector<StartPosition> Arena::positions() const {
    const auto *first = reinterpret_cast<const StartPosition *>(base_ + header().positions_offset);
    return {first, first + header().position_count};
}

}  // namespace st
