// Prints the rows of records that go, through slots whose ragged block is soon full, into a kind for tests. Arguments:
// format, rows a slot, values a row in the mean, where records are resumed (0 or 1), separator or "", files.
// A line a slot: its rows as number:text, separated by blanks; then a line for each dead row.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "decode/batch_filler.h"

using namespace st;

namespace {

#define MUST(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition), std::abort(); \
    } while (0)

std::shared_ptr<const DecodePlan> plan_of(u32 rows, u32 values) {
    std::vector<PlanColumn> columns(2);
    columns[0].name = "x";
    columns[0].kind = make_kind("number", "x", {});
    columns[0].blocks = {"numbers"};
    columns[1].name = "note";
    columns[1].kind = make_kind("letters", "note", {});
    columns[1].blocks = {"note.bytes", "note.count"};
    columns[1].missing = Missing::value;
    return DecodePlan::make(columns, {},
                            SlotLayout::make(rows, 1,
                                             {{"note.bytes", Dtype::u8, values, true},
                                              {"numbers", Dtype::f32, 1},
                                              {"note.count", Dtype::u8, 1}}));
}

struct Printer {
    BatchFiller &batch;
    std::vector<u8> slot;

    void open() {
        std::fill(slot.begin(), slot.end(), 0xEE);
        batch.open(slot.data(), batch.plan().layout.row_capacity);
    }

    void close() {
        const SlotLayout &layout = batch.plan().layout;
        const Block &bytes = layout.blocks[0];
        const u32 rows = batch.close(), capacity = layout.row_capacity;
        const u32 *ends = reinterpret_cast<const u32 *>(slot.data() + bytes.offset);
        const u8 *letters = slot.data() + bytes.values;
        MUST(ends[0] == 0 && ends[rows] <= capacity * bytes.width);
        for (u32 row = 0; row < rows; ++row) {
            f32 x;
            std::memcpy(&x, slot.data() + layout.blocks[1].offset + 4 * row, 4);
            const u32 count = ends[row + 1] - ends[row];
            MUST(slot[layout.blocks[2].offset + row] == static_cast<u8>(count));
            std::printf("%g:%.*s ", static_cast<double>(x), static_cast<int>(count),
                        reinterpret_cast<const char *>(letters + ends[row]));
        }
        std::printf("\n");
        for (u32 row = rows; row < capacity; ++row) MUST(ends[row + 1] == ends[rows]);
        for (u32 at = ends[rows]; at < capacity * bytes.width; ++at) MUST(letters[at] == 0);
        for (u32 row = rows; row < capacity; ++row) MUST(slot[layout.blocks[2].offset + row] == 0);
        for (const DeadRows &dead : batch.tally().dead_rows)
            std::printf("%s: %s\n", dead.path.c_str(), dead.reason.c_str());
        batch.tally().clear();
    }
};

}  // namespace

int main(int count, char **arguments) {
    MUST(count >= 7);
    RecordFormat format{arguments[1], {}};
    if (*arguments[5]) format.options.set("separator", std::string(arguments[5]));
    const auto plan = plan_of(static_cast<u32>(std::atoi(arguments[2])), static_cast<u32>(std::atoi(arguments[3])));
    const bool resumes = std::atoi(arguments[4]);
    BatchFiller batch(format, plan);
    Printer printer{batch, std::vector<u8>(plan->layout.slot_bytes)};
    printer.open();
    for (int i = 6; i < count; ++i) {
        std::ifstream file(arguments[i], std::ios::binary);
        const std::string record((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        const RecordView view{.value = reinterpret_cast<const u8 *>(record.data()), .size = record.size()};
        batch.begin(view);
        while (!batch.next()) {
            const i64 row = batch.record().row();
            MUST(batch.full());
            printer.close();
            printer.open();
            if (resumes) batch.begin(view, row);   // as a run does that goes on inside a record
        }
    }
    printer.close();
}
