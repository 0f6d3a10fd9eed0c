// Reads registries' frames cut, mutated and made up, each in a heap block of exactly its size, in a header or before a
// value, and checks what must always hold. Built with sanitizers by sanitized.py. Arguments: seed, frames.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "decode/protobuf_place.h"
#include "decode/schema_frame.h"

using namespace st;

namespace {

#define MUST(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition), std::abort(); \
    } while (0)

struct Exact {
    explicit Exact(const std::string &given) : bytes(new u8[given.size()]), size(given.size()) {
        std::memcpy(bytes.get(), given.data(), size);
    }
    std::unique_ptr<u8[]> bytes;
    u64 size;
};

DeadLetterHeader header(const void *handle, const char *name) {
    MUST(std::string(name) == "__value_schema_id");
    const Exact &of = *static_cast<const Exact *>(handle);
    return {name, of.bytes.get(), of.size};
}

void run(const std::string &frame, const std::string &behind, bool in_header) {
    const Exact named(frame), value(in_header ? behind : frame + behind);
    RecordView record{.value = value.bytes.get(), .size = value.size, .handle = &named};
    if (in_header) record.header = header;
    const SchemaFrame found = SchemaFrame::of(record);
    MUST(found.in_header == (in_header && named.size));
    MUST(found.size == (found.in_header ? named.size : value.size));
    SchemaName name, whole;
    const char *const after = found.read(name), *const all = found.read_all(whole);
    MUST(!found.problem().empty() && (after != nullptr) == static_cast<bool>(name) && (!all || all == after));
    if (!after) return;
    const u64 taken = static_cast<u64>(after - found.bytes);
    MUST(taken <= found.size && taken == (found.bytes[0] ? SchemaName::GUID_BYTES : SchemaName::ID_BYTES));
    MUST(name.text().size() == 36 || (name.form == SchemaName::Form::id && name.text().size() <= 10));
    MUST(SchemaName::Hash()(name) == SchemaName::Hash()(whole) && name == whole);
    const char *const datum = found.datum(record, after), *const end = reinterpret_cast<const char *>(record.value);
    MUST(datum >= end && datum <= end + record.size);
    ProtoBytes bytes;
    bytes.load(found.bytes, found.size);
    std::vector<i64> place;
    const char *const placed = read_place(bytes, after, found.end(), place);
    MUST(placed ? placed > after && placed <= found.end() && !place.empty() && place.size() <= 32
                : !bytes.problem().empty());
}

}  // namespace

int main(int count, char **arguments) {
    MUST(count == 3);
    std::mt19937 chance(static_cast<u32>(std::atoi(arguments[1])));
    const std::string id("\0\0\0\0\7", 5);
    const std::string guid("\1\x8a\x3f\x0c\0\x11\x22\x44\x55\x86\x77\x88\x99\xaa\xbb\xcc\xdd", 17);
    for (int i = 0; i < std::atoi(arguments[2]); ++i) {
        std::string frame = chance() % 2 ? id : guid;
        for (u32 more = chance() % 40; more; --more)
            frame += static_cast<char>(chance() % 3 ? chance() % 4 : chance());
        if (chance() % 3 == 0) frame[chance() % frame.size()] = static_cast<char>(chance());
        const u64 size = chance() % 2 ? frame.size() : chance() % (frame.size() + 1);
        run(frame.substr(0, size), std::string(chance() % 9, 'x'), chance() % 2);
    }
    std::printf("all hold\n");
}
