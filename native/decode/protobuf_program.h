// A writer's Protobuf message and the job's columns as steps by field: what is a cell, what is walked, what is passed.
#pragma once
#include <utility>

#include "decode/protobuf_schema.h"
#include "decode/row_writer.h"

namespace st {

// What a field's tag looks like in the first two bytes of it, where it has no more: it is there where
// (bytes & mask) == word.
struct ProtoTag {
    u16 word = 1, mask = 0;   // never
    u8 bytes = 0;

    ProtoTag() = default;
    ProtoTag(u32 number, ProtoWire wire) {
        const u32 raw = number << 3 | static_cast<u32>(wire);
        if (raw >= 1 << 14) return;
        bytes = raw < 0x80 ? 1 : 2;
        mask = bytes == 1 ? 0xff : 0xffff;
        word = static_cast<u16>(bytes == 1 ? raw : (raw & 0x7f) | 0x80 | raw >> 7 << 8);
    }
    bool matches(const char *p) const { return (load_little<u16>(p) & mask) == word; }
};

// Plain numbers side by side, all of them floats or all doubles, as they lie in a message that has each of them, in
// order: what its bytes are where they are tags, word by word (the last of them overlaps), and where the numbers are.
struct ProtoRun {
    u64 bytes = 0;
    std::vector<u64> words, masks;
    std::vector<u32> places;

    bool matches(const char *p, const char *end) const {
        if (static_cast<u64>(end - p) < bytes) return false;
        u64 differs = 0;
        const u64 last = words.size() - 1;
        for (u64 i = 0; i < last; ++i) differs |= (load_little<u64>(p + 8 * i) & masks[i]) ^ words[i];
        differs |= (load_little<u64>(p + bytes - 8) & masks[last]) ^ words[last];
        return differs == 0;
    }
};

struct ProtoStep {
    static constexpr u32 NONE = ~u32{0};

    ProtoTag tag;
    ProtoWire wire;
    ProtoType type;
    bool is_cell = false;              // of a column
    bool is_odd = false;               // of a type that no column takes
    bool silent = false;               // its cell is 0, false or "" where it is not there
    ProtoWire each = ProtoWire::varint;   // of a list: what one of its values is
    i32 column = NO_COLUMN;
    u32 place = NO_FLOAT;              // RowWriter::number_place of the column
    u32 run = 1;                       // steps from here on that are of one run
    u32 run_at = NONE;                 // the run that begins here
    u32 part = NONE;                   // of a message: its steps
    u32 symbols = 0;                   // of an enum: the first in their table
    u32 symbol_count = 0;
    u32 number = 0;
    u32 silent_before = 0;             // steps of its part that are silent
    u32 others = NONE;                 // lists of columns: of the other fields of its oneof, and within the message
    u32 below = NONE;
    u32 list = NONE;                   // of many values as one cell: their number among such steps
    const char *article = "";
    const std::string *name = nullptr;
};
static_assert(sizeof(ProtoStep) <= 80);

struct ProtoProgram {
    struct Symbol {
        i32 number;
        std::string_view text;
        i32 word;   // Kind::word()
    };
    struct Part {
        std::vector<ProtoStep> steps;   // by number
        std::vector<std::pair<u32, u32>> silent;   // column, step
    };

    std::vector<Part> parts;            // the first is the row's
    std::vector<Symbol> symbols;
    std::vector<ProtoRun> runs;
    std::vector<std::vector<u32>> lists;   // of columns
    std::string refused_field, refusal; // why the job's columns are not those of the schema; "" else

    const Symbol *symbol(const ProtoStep &step, i32 number) const {
        const Symbol *const first = symbols.data() + step.symbols, *const last = first + step.symbol_count;
        if (static_cast<u32>(number) < step.symbol_count && first[number].number == number) return first + number;
        const auto below = [](const Symbol &symbol, i32 other) { return symbol.number < other; };
        const Symbol *found = std::lower_bound(first, last, number, below);
        return found != last && found->number == number ? found : nullptr;
    }
};

// What of a writer's field the reader's takes: the same, or more of the same. "" where it takes all of it.
inline std::string proto_difference(const ProtoField &writer, const ProtoField &reader) {
    using Type = ProtoType;
    const auto bits = [](Type type) { return type == Type::int64 || type == Type::uint64 || type == Type::sint64 ||
                                             type == Type::fixed64 || type == Type::sfixed64 ? 64 : 32; };
    const auto is_whole = [](Type type) { return type >= Type::int32 && type <= Type::sfixed64; };
    const auto is_unsigned = [](Type type) {
        return type == Type::uint32 || type == Type::uint64 || type == Type::fixed32 || type == Type::fixed64;
    };
    const auto takes = [&] {
        if (writer.repeated != reader.repeated) return false;
        if (writer.type == reader.type) return true;
        if (writer.type == Type::float_) return reader.type == Type::double_;
        const bool to_real = reader.type == Type::float_ || reader.type == Type::double_;
        if (writer.type == Type::enumeration) return is_whole(reader.type) || reader.type == Type::text;
        if (!is_whole(writer.type)) return false;
        if (to_real) return true;
        if (!is_whole(reader.type) || (is_unsigned(reader.type) && !is_unsigned(writer.type))) return false;
        const bool gains_sign = is_unsigned(writer.type) && !is_unsigned(reader.type);
        return bits(writer.type) + gains_sign <= bits(reader.type);
    };
    if (takes()) return "";
    const auto told = [&](const ProtoField &field) {
        return (writer.repeated && reader.repeated ? std::string("many of ") + field.one() : field.article());
    };
    return "expected " + told(reader) + ", got " + told(writer);
}

// The schemas and the plan stay as long as the program. With a reader's message the columns are that one's fields,
// which are a writer's by their numbers.
class ProtoCompiler {
  public:
    static ProtoProgram compile(const ProtoMessage &writer, const ProtoMessage *reader, const DecodePlan &plan,
                                const RowWriter &row) {
        ProtoCompiler compiler(plan, row);
        compiler.part(writer, reader, 0);
        return std::move(compiler.made_);
    }

  private:
    using Part = ProtoProgram::Part;
    static constexpr u32 NO_NODE = ~u32{0};

    ProtoCompiler(const DecodePlan &plan, const RowWriter &writer) : plan_(plan), writer_(writer) {}

    // The steps of a message: a node of the plan's tree, or one without columns, which may hold itself.
    u32 part(const ProtoMessage &writer, const ProtoMessage *reader, u32 node) {
        const u32 at = static_cast<u32>(made_.parts.size());
        if (node == NO_NODE) {
            const auto [known, is_new] = walked_.try_emplace(&writer, at);
            if (!is_new) return known->second;
        }
        made_.parts.emplace_back();
        Part made;
        for (const ProtoField &field : writer.fields) made.steps.push_back(step(field, reader, node));
        for (ProtoStep &each : made.steps) {
            const u64 own = static_cast<u64>(&each - made.steps.data());
            each.silent_before = static_cast<u32>(made.silent.size());
            if (each.silent) made.silent.emplace_back(each.column, own);
            std::vector<u32> others;
            for (u64 i = 0; i < made.steps.size(); ++i) {
                if (i == own || writer.fields[i].oneof.empty() || writer.fields[i].oneof != writer.fields[own].oneof)
                    continue;
                const ProtoStep &other = made.steps[i];
                if (other.is_cell) others.push_back(static_cast<u32>(other.column));
                if (other.below == ProtoStep::NONE) continue;
                const std::vector<u32> &below = made_.lists[other.below];
                others.insert(others.end(), below.begin(), below.end());
            }
            each.others = list(std::move(others));
        }
        find_runs(made);
        made_.parts[at] = std::move(made);
        return at;
    }

    ProtoStep step(const ProtoField &field, const ProtoMessage *reader, u32 node) {
        const ProtoField *const as = reader ? reader->field(field.number) : nullptr;
        const bool is_known = node != NO_NODE && (!reader || as);
        const std::string &name = as ? as->name : field.name;
        const i32 target = is_known ? plan_.tree.node(node).keys.find(name) : NO_COLUMN;
        ProtoStep made;
        made.tag = ProtoTag(field.number, field.wire());
        made.wire = field.wire();
        made.type = field.type;
        made.number = field.number;
        made.name = &name;
        made.article = field.article();
        if (target >= 0) {
            cell(made, field, target);
            if (as) compare(field, *as);
        }
        u32 inner = NO_NODE;
        if (target < 0 && target != NO_COLUMN) {
            const KeyTree::Node &of = plan_.tree.node(node_of(target));
            if (!of.columns.empty() && !of.is_array) inner = node_of(target);
        }
        if (inner != NO_NODE && as) compare(field, *as);
        if (field.type != ProtoType::message || field.repeated) return made;
        if (inner != NO_NODE) made.below = list(plan_.tree.node(inner).columns);
        made.part = part(*field.message, as && inner != NO_NODE ? as->message : nullptr, inner);
        return made;
    }

    void cell(ProtoStep &made, const ProtoField &field, i32 column) {
        const Kind *const kind = plan_.columns[column].kind.get();
        made.is_cell = true;
        made.column = column;
        made.place = writer_.number_place(column);
        const bool takes_bytes = kind && kind->takes_bytes();
        made.is_odd = field.repeated || (field.type == ProtoType::bytes && !takes_bytes) ||
                      field.type == ProtoType::message;
        if (has_values(field)) {
            made.list = lists_++;
            made.each = field.wire();
            made.wire = ProtoWire::length;
            made.tag = ProtoTag(field.number, made.wire);
            made.place = NO_FLOAT;
        }
        made.silent = !field.presence && !made.is_odd && field.wire() != ProtoWire::length;
        const bool has_cells = !made.is_odd || made.list != ProtoStep::NONE;
        if (!has_cells || field.type != ProtoType::enumeration || !kind || !kind->takes_names()) return;
        made.symbols = static_cast<u32>(made_.symbols.size());
        made.symbol_count = static_cast<u32>(field.enumeration->names.size());
        for (const auto &[number, name] : field.enumeration->names)
            made_.symbols.push_back({number, name, kind->word(name)});
    }

    static bool has_values(const ProtoField &field) {
        return field.repeated && field.type != ProtoType::message && field.type != ProtoType::bytes &&
               field.type != ProtoType::timestamp;
    }

    void compare(const ProtoField &field, const ProtoField &as) {
        std::string difference = proto_difference(field, as);
        if (difference.empty() || !made_.refusal.empty()) return;
        made_.refused_field = as.name;
        made_.refusal = std::move(difference);
    }

    u32 list(std::vector<u32> columns) {
        if (columns.empty()) return ProtoStep::NONE;
        made_.lists.push_back(std::move(columns));
        return static_cast<u32>(made_.lists.size() - 1);
    }

    void find_runs(Part &part) {
        for (u64 i = part.steps.size(); i-- > 1;) {
            const ProtoStep &next = part.steps[i];
            ProtoStep &own = part.steps[i - 1];
            const bool is_real = own.type == ProtoType::float_ || own.type == ProtoType::double_;
            const auto is_plain = [](const ProtoStep &step) {
                return step.is_cell && !step.is_odd && step.place != NO_FLOAT && step.others == ProtoStep::NONE &&
                       step.tag.bytes != 0;
            };
            if (is_real && own.type == next.type && is_plain(own) && is_plain(next) && own.silent == next.silent &&
                own.column + 1 == next.column && own.place + writer_.float_bytes() == next.place)
                own.run = next.run + 1;
        }
        for (u64 i = 0; i < part.steps.size(); i += part.steps[i].run)
            if (part.steps[i].run > 1) part.steps[i].run_at = add_run(&part.steps[i]);
    }

    u32 add_run(const ProtoStep *steps) {
        const u64 width = steps->type == ProtoType::float_ ? 4 : 8;
        std::string tags, masks;
        ProtoRun run;
        for (u32 i = 0; i < steps->run; ++i) {
            const ProtoTag &tag = steps[i].tag;
            tags.append(reinterpret_cast<const char *>(&tag.word), tag.bytes);
            masks.append(tag.bytes, static_cast<char>(0xff));
            run.places.push_back(static_cast<u32>(tags.size()));
            tags.append(width, 0);
            masks.append(width, 0);
        }
        run.bytes = tags.size();
        for (u64 at = 0; at < run.bytes; at += 8) {
            const u64 from = std::min(at, run.bytes - 8);
            run.words.push_back(load_little<u64>(tags.data() + from));
            run.masks.push_back(load_little<u64>(masks.data() + from));
        }
        made_.runs.push_back(std::move(run));
        return static_cast<u32>(made_.runs.size() - 1);
    }

    const DecodePlan &plan_;
    const RowWriter &writer_;
    ProtoProgram made_;
    u32 lists_ = 0;
    std::map<const ProtoMessage *, u32> walked_;   // parts without columns
};

}  // namespace st
