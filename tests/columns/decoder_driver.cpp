// Feeds decoders records cut, mutated and made up, each in a heap block of exactly its size, and checks what must
// always hold. Built with the address and undefined-behaviour sanitizers by sanitized.py. Arguments: format (or
// format:option=text), seed, mutations, files.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include "decode/decode_plan.h"
#include "decode/decoder.h"

using namespace st;

namespace {

#define MUST(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            std::fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition), std::abort(); \
    } while (0)

PlanColumn column(const char *name, const char *kind, const char *block, Missing missing = Missing::dead_letter,
                  Options options = {}) {
    PlanColumn made;
    made.name = name;
    made.missing = missing;
    if (!kind) return made;
    if (std::string(kind) == "category") options.set("buckets", i64{50}), options.set("hash_bits", i64{32});
    made.kind = make_kind(kind, name, options);
    made.blocks = {block};
    return made;
}

Options with(const char *name, OptionValue value, Options options = {}) {
    options.set(name, std::move(value));
    return options;
}

SlotLayout layout_of(u32 rows, Dtype label) {
    return SlotLayout::make(
        rows, 1,
        {{"numbers", Dtype::f32, 2}, {"categories", Dtype::i32, 1}, {"label", label, 1}, {"weight", Dtype::f32, 1}});
}

std::shared_ptr<const DecodePlan> simple_plan(u32 rows) {
    std::vector<PlanColumn> columns = {
        column("x1", "number", "numbers"), column("x2", "number", "numbers"),
        column("carrier", "category", "categories", Missing::value, with("missing_value", std::string())),
        column("late", "label", "label", Missing::skip, with("is", std::string("binary")))};
    return DecodePlan::make(columns, {}, layout_of(rows, Dtype::f32), {{"weight", 1.0}});
}

std::shared_ptr<const DecodePlan> nested_plan(u32 rows) {
    std::vector<PlanColumn> columns = {
        column("x1", "number", "numbers"), column("x2", "number", "numbers"),
        column("carrier", "category", "categories", Missing::value, with("missing_value", std::string())),
        column("late", "label", "label", Missing::skip, with("is", std::string("binary")))};
    columns[0].path = {{"user"}, {"x1"}};
    columns[1].path = {{"list"}, {"", 1}, {"x3"}};
    columns[2].path = {{"user"}, {"a.b"}, {"carrier"}};
    return DecodePlan::make(columns, {}, layout_of(rows, Dtype::f32), {{"weight", 1.0}});
}

std::shared_ptr<const DecodePlan> rich_plan(u32 rows) {
    const std::vector<std::string> names = {"walk", "sit", "true"};
    const Options classes = with("class_count", i64{3}, with("classes", names));
    std::vector<PlanColumn> columns = {
        column("x1", "number", "numbers", Missing::value, with("missing_value", 0.5)),
        column("id", nullptr, ""),
        column("x2", "number", "numbers", Missing::skip),
        column("carrier", "category", "categories"),
        column("when", "time", "", Missing::value,
               with("missing_value", 7.0, with("unit", std::vector<i64>{1, 1000}))),
        column("late", "label", "label", Missing::dead_letter, with("is", std::string("class"), classes)),
        column("w", "weight", "weight", Missing::value, with("missing_value", 2.0))};
    return DecodePlan::make(columns, {0, 1, 2, 3}, layout_of(rows, Dtype::i32));
}

// Texts in the place of the usual plan's category, as words and pairs of them.
std::shared_ptr<const DecodePlan> text_plan(u32 rows) {
    Options words = with("words", true, with("lower_case", true, with("least", i64{1}, with("longest", i64{2}))));
    words = with("ranges", std::vector<i64>{48, 58, 65, 91, 97, 123, 0xe9, 0x1f600}, with("most", i64{5}, words));
    words = with("buckets", i64{50}, with("hash_bits", i64{32}, with("missing_value", std::string("none"), words)));
    SlotLayout layout = SlotLayout::make(rows, 1, {{"numbers", Dtype::f32, 2}, {"categories", Dtype::i32, 1},
                                                   {"label", Dtype::f32, 1}, {"weight", Dtype::f32, 1},
                                                   {"words", Dtype::i32, 2, true, 5}});
    std::vector<PlanColumn> columns = {
        column("x1", "number", "numbers", Missing::value), column("x2", "number", "numbers", Missing::value),
        column("carrier", "text", "words", Missing::value, words),
        column("late", "label", "label", Missing::skip, with("is", std::string("binary")))};
    return DecodePlan::make(columns, {}, layout, {{"weight", 1.0}});
}

class Driver {
  public:
    Driver(const RecordFormat &format, std::shared_ptr<const DecodePlan> plan) : plan_(std::move(plan)) {
        decoder_ = make_decoder(format, plan_);
        slot_ = std::make_unique<u8[]>(plan_->layout.slot_bytes);
    }

    void run(const std::string &record, i64 from_row) {
        const auto exact = std::make_unique<u8[]>(record.size());
        std::memcpy(exact.get(), record.data(), record.size());
        decoder_->begin({.value = exact.get(), .size = record.size()}, from_row);
        const u32 capacity = plan_->layout.row_capacity;
        i64 passed = 0;
        for (bool done = false; !done;) {
            RowSink sink{slot_.get(), 0, capacity, -1};
            RowTally tally;
            const i64 before = decoder_->row();
            done = decoder_->next(sink, tally);
            check(sink, tally);
            MUST(done || sink.rows == capacity || plan_->is_ragged);
            MUST(done || decoder_->row() > before);
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
            for (u32 c = 0; c < 2; ++c) MUST(std::isfinite(load<f32>(0, row, c)));
            MUST(load<u32>(1, row, 0) < 50 && load<f32>(3, row, 0) >= 0);
        }
    }

    template <class T>
    T load(u32 block, u32 row, u32 c) const {
        T value;
        std::memcpy(&value, slot_.get() + plan_->blocks[block].offset + row * plan_->blocks[block].stride + 4 * c, 4);
        return value;
    }

    std::shared_ptr<const DecodePlan> plan_;
    std::unique_ptr<Decoder> decoder_;
    std::unique_ptr<u8[]> slot_;
};

RecordFormat format_of(const std::string &argument) {
    const u64 colon = argument.find(':'), equals = argument.find('=');
    RecordFormat format{argument.substr(0, colon)};
    if (colon != argument.npos)
        format.options.set(argument.substr(colon + 1, equals - colon - 1), argument.substr(equals + 1));
    return format;
}

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
    const RecordFormat format = format_of(arguments[1]);
    std::mt19937 chance(static_cast<u32>(std::atoi(arguments[2])));
    const int mutations = std::atoi(arguments[3]);
    std::vector<Driver> drivers;
    for (const u32 rows : {1u, 3u, 300u})
        for (const auto plan : {simple_plan, rich_plan, nested_plan, text_plan})
            drivers.emplace_back(format, plan(rows));
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
