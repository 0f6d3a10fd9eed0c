// A writer's Avro schema and the job's columns as a flat list of steps: what of a datum is a cell, what is passed over.
#pragma once
#include <algorithm>
#include <map>
#include <utility>

#include "decode/avro_resolution.h"
#include "decode/row_writer.h"

namespace st {

enum class AvroCode : u8 {
    end,                                             // of a part
    fixed, varint, sized, blocks, call,              // pass over: bytes; a number; a length and its bytes; an array or
                                                     // a map, part by part; a record's part
    boolean, whole, moment, f32, f64, text, symbol,  // a cell; f32 and f64: of `count` columns side by side
    decimal, uuid, bytes, odd,                              // odd: of a type that no column takes
    constant,                                        // the reader's default of a field that the writer has not
    choice,                                          // a union: a part of its branch
    list,                                            // an array as one cell: a part of each element
};

struct AvroOp {
    static constexpr u8 NO_NULL = 0xff;
    static constexpr u64 VARIABLE = ~u64{0};

    AvroCode code;
    u8 null_byte = NO_NULL;          // of a union of null and this: null's branch, as it is written
    i32 column = NO_COLUMN;
    u32 place = NO_FLOAT;            // RowWriter::number_place of the column
    u32 at = 0;                      // part; of a symbol or a choice the first in their table
    u64 count = 1;                   // bytes, columns, branches or symbols; of blocks the bytes of each element
    u32 field = 0;                   // of the row, that this belongs to
    const AvroType *type = nullptr;
    const JsonValue *value = nullptr;   // of a constant
    bool nested = false;                // in a record within the row
    u32 inside = 0;                     // records around it but the row, of those that do not always take as many bytes
};

struct AvroProgram {
    struct Symbol {
        std::string_view text;
        i32 word;   // Kind::word()
    };
    using Part = std::vector<AvroOp>;

    std::vector<Part> parts = std::vector<Part>(1);   // the first is the row's
    std::vector<u32> branches;                        // parts of unions
    std::vector<Symbol> symbols;
    std::string refused_field, refusal;               // why the job's columns are not those of the schema; "" else
};

// The schemas and the plan stay as long as the program. With a reader's schema the columns are that one's fields, as
// far as they resolve.
class AvroCompiler {
  public:
    static AvroProgram compile(const AvroSchema &schema, const AvroSchema *reader, const DecodePlan &plan,
                               const RowWriter &writer) {
        AvroCompiler compiler(plan, writer);
        AvroProgram::Part row;
        compiler.fields(row, schema.row(), reader ? &reader->row() : nullptr, 0);
        row.push_back({AvroCode::end});
        compiler.made_.parts[0] = std::move(row);
        return std::move(compiler.made_);
    }

  private:
    using Part = AvroProgram::Part;

    AvroCompiler(const DecodePlan &plan, const RowWriter &writer) : plan_(plan), writer_(writer) {}

    // The fields of a record, a node of the plan's tree: the row itself, or one within it.
    void fields(Part &to, const AvroType &writer, const AvroType *reader, u32 node) {
        const KeyTable &keys = plan_.tree.node(node).keys;
        std::vector<const AvroField *> given;
        for (const AvroField &field : writer.fields) {
            const AvroField *as = reader ? reader_field(writer, *reader, field) : &field;
            value(to, field, reader ? as : nullptr, as ? keys.find(as->name) : NO_COLUMN);
            given.push_back(as);
            if (node == 0) ++field_;
        }
        for (u64 i = 0; reader && i < reader->fields.size(); ++i) {
            const AvroField &field = reader->fields[i];
            const bool has = std::find(given.begin(), given.end(), &field) != given.end();
            const i32 column = keys.find(field.name);
            if (column < 0 || has || !field.otherwise) continue;
            const AvroType &type = field.type->kind == AvroType::choice ? *field.type->inner[0] : *field.type;
            add(to, AvroCode::constant, type, column).value = &*field.otherwise;
        }
    }

    // `as`: the reader's field, where there is a reader.
    void value(Part &to, const AvroField &field, const AvroField *as, i32 target) {
        if (target == NO_COLUMN) return pass(to, *field.type);
        if (target < 0) return nested(to, *field.type, as ? as->type : nullptr, node_of(target));
        if (as) compare(field, *as);
        cell(to, *field.type, target);
    }

    // What columns lie below: a record. In whatever else stands there they are missing.
    void nested(Part &to, const AvroType &type, const AvroType *reader, u32 node) {
        const KeyTree::Node &of = plan_.tree.node(node);
        if (of.columns.empty() || of.is_array) return pass(to, type);
        if (type.kind == AvroType::choice)
            return choose(to, type, [&](Part &part, const AvroType &branch) { nested(part, branch, reader, node); });
        if (type.kind != AvroType::record) return pass(to, type);
        const bool counts = type.bytes_each == AvroType::VARIABLE;
        ++nested_, inside_ += counts;
        fields(to, type, record_of(reader), node);
        --nested_, inside_ -= counts;
    }

    static const AvroType *record_of(const AvroType *reader) {
        if (!reader || reader->kind == AvroType::record) return reader;
        for (const AvroType *branch : reader->inner)
            if (reader->kind == AvroType::choice && branch->kind == AvroType::record) return branch;
        return nullptr;
    }

    // The reader's field that a writer's is: of its name, or one that has the name among its aliases.
    static const AvroField *reader_field(const AvroType &writer, const AvroType &reader, const AvroField &field) {
        const auto named = [](const AvroType &type, const std::string &name) -> const AvroField * {
            for (const AvroField &each : type.fields)
                if (each.name == name) return &each;
            return nullptr;
        };
        if (const AvroField *same = named(reader, field.name)) return same;
        for (const AvroField &each : reader.fields)
            for (const std::string &alias : each.aliases)
                if (alias == field.name && !named(writer, each.name)) return &each;
        return nullptr;
    }

    void compare(const AvroField &field, const AvroField &as) {
        std::string difference = avro_difference(*field.type, *as.type);
        if (difference.empty() || !made_.refusal.empty()) return;
        made_.refused_field = field.name;
        made_.refusal = std::move(difference);
    }

    AvroOp &add(Part &to, AvroCode code, const AvroType &type, i32 column = NO_COLUMN) {
        AvroOp op{.code = code, .column = column, .place = writer_.number_place(column), .field = field_};
        op.type = &type;
        op.nested = nested_ > 0;
        op.inside = inside_;
        to.push_back(op);
        return to.back();
    }

    u32 keep(Part part) {
        part.push_back({AvroCode::end});
        made_.parts.push_back(std::move(part));
        return static_cast<u32>(made_.parts.size() - 1);
    }

    void pass(Part &to, const AvroType &type) {
        if (type.bytes_each != AvroType::VARIABLE) return pass_fixed(to, type);
        switch (type.kind) {
            case AvroType::bytes:
            case AvroType::string: add(to, AvroCode::sized, type); return;
            case AvroType::record: add(to, AvroCode::call, type).at = record_part(type); return;
            case AvroType::array:
            case AvroType::map: return pass_blocks(to, type);
            case AvroType::choice:
                return choose(to, type, [this](Part &part, const AvroType &branch) { pass(part, branch); });
            default: add(to, AvroCode::varint, type);
        }
    }

    void pass_fixed(Part &to, const AvroType &type) {
        const u64 bytes = static_cast<u64>(type.bytes_each);
        const auto joins = [this](const AvroOp &op) {
            return op.code == AvroCode::fixed && op.null_byte == AvroOp::NO_NULL && is_beside(op);
        };
        if (bytes == 0) return;
        if (!to.empty() && joins(to.back())) to.back().count += bytes;
        else add(to, AvroCode::fixed, type).count = bytes;
    }

    // Whether what comes now may be one step with it: then a cut says which field of the row it is in.
    bool is_beside(const AvroOp &op) const {
        return op.nested == (nested_ > 0) && (!op.nested || op.field == field_);
    }

    void pass_blocks(Part &to, const AvroType &type) {
        Part element;
        const AvroType &inner = *type.inner[0];
        const bool fixed = type.kind == AvroType::array && inner.bytes_each != AvroType::VARIABLE;
        if (type.kind == AvroType::map) add(element, AvroCode::sized, type);   // its key
        pass(element, inner);
        const u32 at = keep(std::move(element));
        AvroOp &op = add(to, AvroCode::blocks, type);
        op.at = at;
        op.count = fixed ? static_cast<u64>(inner.bytes_each) : AvroOp::VARIABLE;
    }

    // A record may hold itself.
    u32 record_part(const AvroType &type) {
        const auto [known, is_new] = records_.try_emplace(&type, 0);
        if (!is_new) return known->second;
        const u32 at = known->second = keep({});
        Part part;
        const u32 around = std::exchange(inside_, 0);   // where it is called is where it lies
        for (const AvroField &field : type.fields) pass(part, *field.type);
        inside_ = around;
        part.push_back({AvroCode::end});
        made_.parts[at] = std::move(part);
        return at;
    }

    template <class Fill>
    void choose(Part &to, const AvroType &type, Fill fill) {
        u32 null_branch;
        if (const AvroType *other = type.nullable(null_branch)) {
            Part alone;
            fill(alone, *other);
            if (alone.size() == 1 && alone[0].null_byte == AvroOp::NO_NULL) {   // a step has one null
                alone[0].null_byte = static_cast<u8>(2 * null_branch);
                to.push_back(alone[0]);
                return;
            }
        }
        std::vector<u32> parts;
        for (const AvroType *branch : type.inner) {
            Part part;
            fill(part, *branch);
            parts.push_back(keep(std::move(part)));
        }
        AvroOp &op = add(to, AvroCode::choice, type);
        op.at = static_cast<u32>(made_.branches.size());
        op.count = parts.size();
        made_.branches.insert(made_.branches.end(), parts.begin(), parts.end());
    }

    void cell(Part &to, const AvroType &type, i32 column) {
        switch (type.kind) {
            case AvroType::null: return;   // a missing cell
            case AvroType::boolean: add(to, AvroCode::boolean, type, column); return;
            case AvroType::int_:
            case AvroType::long_: {
                const bool plain = !type.unit_counts() || writer_.number_place(column) != NO_FLOAT;
                add(to, plain ? AvroCode::whole : AvroCode::moment, type, column);
                return;
            }
            case AvroType::float_: return add_real(to, AvroCode::f32, type, column);
            case AvroType::double_: return add_real(to, AvroCode::f64, type, column);
            case AvroType::string: add(to, AvroCode::text, type, column); return;
            case AvroType::enumeration: return add_symbol(to, type, column);
            case AvroType::choice:
                return choose(to, type, [&](Part &part, const AvroType &branch) { cell(part, branch, column); });
            default: break;
        }
        if (takes_list(type, column)) return add_list(to, type, column);
        if (type.logical == AvroType::decimal) add(to, AvroCode::decimal, type, column);
        else if (type.logical == AvroType::uuid) add(to, AvroCode::uuid, type, column);
        else if (takes_bytes(type, column)) add(to, AvroCode::bytes, type, column);
        else add_odd(to, type, column);
    }

    // Columns side by side are one step.
    void add_real(Part &to, AvroCode code, const AvroType &type, i32 column) {
        const u32 place = writer_.number_place(column);
        if (!to.empty() && place != NO_FLOAT) {
            AvroOp &last = to.back();
            const i32 next = last.column + static_cast<i32>(last.count);
            if (last.code == code && last.null_byte == AvroOp::NO_NULL && last.place != NO_FLOAT && column == next &&
                is_beside(last) && place == last.place + writer_.float_bytes() * last.count) {
                ++last.count;
                return;
            }
        }
        add(to, code, type, column);
    }

    void add_symbol(Part &to, const AvroType &type, i32 column) {
        AvroOp &op = add(to, AvroCode::symbol, type, column);
        op.at = static_cast<u32>(made_.symbols.size());
        op.count = type.symbols.size();
        for (const std::string &symbol : type.symbols)
            made_.symbols.push_back({symbol, plan_.columns[column].kind->word(symbol)});
    }

    // Of what takes no bytes an array may hold any number.
    bool takes_list(const AvroType &type, i32 column) const {
        const bool is_list = type.kind == AvroType::array && writer_.form(static_cast<u32>(column)) == CellForm::list;
        return is_list && type.inner[0]->bytes_each != 0;
    }

    bool takes_bytes(const AvroType &type, i32 column) const {
        const bool is_bytes = type.kind == AvroType::bytes || type.kind == AvroType::fixed;
        return is_bytes && plan_.columns[column].kind->takes_bytes();
    }

    void add_list(Part &to, const AvroType &type, i32 column) {
        Part element;
        cell(element, *type.inner[0], column);
        const u32 at = keep(std::move(element));
        add(to, AvroCode::list, type, column).at = at;
    }

    void add_odd(Part &to, const AvroType &type, i32 column) {
        Part passed;
        pass(passed, type);
        const u32 at = keep(std::move(passed));
        add(to, AvroCode::odd, type, column).at = at;
    }

    const DecodePlan &plan_;
    const RowWriter &writer_;
    AvroProgram made_;
    std::map<const AvroType *, u32> records_;   // parts
    u32 field_ = 0, nested_ = 0, inside_ = 0;
};

}  // namespace st
