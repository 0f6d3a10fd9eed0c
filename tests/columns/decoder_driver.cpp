// Feeds decoders records cut, mutated and made up, each in a heap block of exactly its size, and checks what must
// always hold. Built with the address and undefined-behaviour sanitizers by test_sanitized.py. Arguments: format, seed,
// mutations, files.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include "decode/formats/json.h"
#include "decode/formats/msgpack.h"
#include "decode/formats/packed.h"

using namespace st;

namespace {

#define MUST(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition), std::abort(); \
    } while (0)

PlanColumn column(const char *name, Target target, Missing missing = Missing::dead_letter) {
    PlanColumn made;
    made.name = name;
    made.target = target;
    made.missing = missing;
    if (target == Target::category) made.buckets = 50;
    if (target == Target::label_class) made.classes = {"walk", "sit", "true"}, made.class_count = 3;
    return made;
}

std::shared_ptr<const DecodePlan> simple_plan(u32 rows) {
    std::vector<PlanColumn> columns = {column("x1", Target::number), column("x2", Target::number),
                                       column("carrier", Target::category),
                                       column("late", Target::label_binary, Missing::skip)};
    columns[2].set_missing(std::string_view());
    return DecodePlan::make(columns, {},
                            SlotLayout::make(rows, 1,
                                             {{"numbers", Dtype::f32, 2},
                                              {"categories", Dtype::i32, 1},
                                              {"label", Dtype::f32, 1},
                                              {"weight", Dtype::f32, 1}}));
}

std::shared_ptr<const DecodePlan> rich_plan(u32 rows) {
    std::vector<PlanColumn> columns = {column("x1", Target::number),
                                       column("id", Target::ignored),
                                       column("x2", Target::number, Missing::skip),
                                       column("carrier", Target::category),
                                       column("when", Target::event_time),
                                       column("late", Target::label_class),
                                       column("w", Target::weight)};
    columns[0].set_missing(0.5), columns[4].set_missing(7.0), columns[6].set_missing(2.0);
    columns[4].unit_divisor = 1000;
    return DecodePlan::make(columns, {0, 1, 2, 3},
                            SlotLayout::make(rows, 1,
                                             {{"numbers", Dtype::f32, 2},
                                              {"categories", Dtype::i32, 1},
                                              {"label", Dtype::i32, 1},
                                              {"weight", Dtype::f32, 1}}));
}

class Driver {
  public:
    Driver(const std::string &format, bool rich, u32 rows) : plan_(rich ? rich_plan(rows) : simple_plan(rows)) {
        decoder_ = format == "json"      ? formats::json(plan_)
                   : format == "msgpack" ? formats::msgpack(plan_)
                                         : formats::packed(plan_);
        slot_ = std::make_unique<u8[]>(plan_->layout.slot_bytes);
    }

    void run(const std::string &record, i64 from_row) {
        const auto exact = std::make_unique<u8[]>(record.size());
        std::memcpy(exact.get(), record.data(), record.size());
        decoder_->begin(exact.get(), record.size(), from_row);
        const u32 capacity = plan_->layout.row_capacity;
        i64 passed = 0;
        for (bool done = false; !done;) {
            RowSink sink{slot_.get(), 0, capacity, -1};
            RowTally tally;
            const i64 before = decoder_->row();
            done = decoder_->next(sink, tally);
            check(sink, tally);
            MUST(done || (sink.rows == capacity && decoder_->row() > before));
            passed += i64{tally.trained} + tally.dead + tally.filtered;
        }
        MUST(passed == std::max<i64>(0, decoder_->row() - from_row));
    }

  private:
    void check(const RowSink &sink, const RowTally &tally) const {
        MUST(sink.rows == tally.trained && sink.rows <= sink.row_capacity);
        i64 dead = 0;
        for (const DeadRows &each : tally.dead_rows) {
            MUST(each.row_from < each.row_to && each.path[0] == '$' && !each.reason.empty() &&
                 each.reason.size() < 400);
            dead += each.row_to - each.row_from;
        }
        MUST(dead == tally.dead);
        for (u32 row = 0; row < sink.rows; ++row) {
            for (u32 c = 0; c < 2; ++c) MUST(std::isfinite(load<f32>(NUMBERS, row, c)));
            MUST(load<u32>(CATEGORIES, row, 0) < 50 && load<f32>(WEIGHT, row, 0) >= 0);
        }
    }

    template <class T>
    T load(u32 block, u32 row, u32 c) const {
        T value;
        std::memcpy(&value, slot_.get() + plan_->offset[block] + row * plan_->stride[block] + 4 * c, 4);
        return value;
    }

    std::shared_ptr<const DecodePlan> plan_;
    std::unique_ptr<Decoder> decoder_;
    std::unique_ptr<u8[]> slot_;
};

std::string mutate(std::string record, std::mt19937 &chance) {
    static constexpr char LIKELY[] = "{}[]\",:\\-.e019nN \0\x90\x91\x81\xa2\xca\xd9\xdd\xff";
    for (u32 n = 1 + chance() % 4; n && !record.empty(); --n) {
        const u64 at = chance() % record.size();
        switch (chance() % 5) {
            case 0:
                record[at] = static_cast<char>(chance());
                break;
            case 1:
                record[at] = LIKELY[chance() % (sizeof LIKELY - 1)];
                break;
            case 2:
                record.insert(at, 1, LIKELY[chance() % (sizeof LIKELY - 1)]);
                break;
            case 3:
                record.erase(at, 1 + chance() % 4);
                break;
            default:
                record.insert(at, record.substr(chance() % record.size(), chance() % 40));
                break;
        }
    }
    return record;
}

}  // namespace

int main(int count, char **arguments) {
    MUST(count >= 5);
    const std::string format = arguments[1];
    std::mt19937 chance(static_cast<u32>(std::atoi(arguments[2])));
    const int mutations = std::atoi(arguments[3]);
    std::vector<Driver> drivers;
    for (const u32 rows : {1u, 3u, 300u})
        for (const bool rich : {false, true}) drivers.emplace_back(format, rich, rows);
    u64 records = 0;
    for (int i = 4; i < count; ++i) {
        std::ifstream file(arguments[i], std::ios::binary);
        const std::string record((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        for (Driver &driver : drivers)
            for (u64 size = 0; size <= record.size(); ++size, ++records) driver.run(record.substr(0, size), 0);
        for (int n = 0; n < mutations; ++n, ++records) {
            const std::string mutated = mutate(record, chance);
            for (Driver &driver : drivers) driver.run(mutated, chance() % 3 ? 0 : chance() % 5);
        }
    }
    std::printf("%llu records\n", static_cast<unsigned long long>(records));
}
