// Protobuf of a table, by the schema in the job's settings: a message is a row, or holds many where it has no other
// field.
#pragma once
#include <cstring>

#include "decode/given_cell.h"
#include "decode/protobuf_schema.h"
#include "decode/record_encoder.h"

namespace st::formats {

class ProtobufEncoder final : public RecordEncoder {
  public:
    explicit ProtobufEncoder(const Options &options)
        : schema_(options.get<std::string>("schema")), top_(schema_.message(options.get<std::string>("message"))) {
        frame_ = registry_frame(options);
        if (frame_.empty()) return;
        if (top_.index.size() < 2 && (top_.index.empty() || top_.index[0] == 0)) {
            frame_.push_back('\0');
            return;
        }
        varint(frame_, 2 * top_.index.size());
        for (const i64 each : top_.index) varint(frame_, 2 * static_cast<u64>(each));
    }

    void encode(const RowTable &table, const PickedRows &rows, std::string &out) override {
        if (table.naming != naming_) learn_columns(table);
        out = frame_;
        const ProtoField *const many = top_.many();
        for (u64 i = 0; i < rows.count; ++i) {
            if (!many) {
                put_fields(table, rows[i], top_, 0, out);
                continue;
            }
            std::string &row = scratch_[0];
            row.clear();
            put_fields(table, rows[i], top_.row(), 0, row);
            put_sized(out, *many, row);
        }
    }

    u64 most_rows() const override { return top_.many() ? RecordEncoder::most_rows() : 1; }

  private:
    static constexpr u64 DEEPEST = 64;

    void learn_columns(const RowTable &table) {
        naming_ = table.naming;
        tree_ = KeyTree();
        for (u32 c = 0; c < table.columns.size(); ++c) {
            const PlanColumn &plan = table.columns[c].plan;
            if (plan.from.empty()) tree_.add(c, plan.name, plan.path);
        }
        tree_.finish();
    }

    void put_fields(const RowTable &table, u64 row, const ProtoMessage &message, u32 node, std::string &out,
                    u64 depth = 1) {
        for (const ProtoField &field : message.fields) {
            const i32 target = tree_.node(node).keys.find(field.name);
            if (target >= 0) {
                put_cell(table, row, field, static_cast<u32>(target), out);
            } else if (target != NO_COLUMN && field.type == ProtoType::message && !field.repeated && depth < DEEPEST) {
                const auto has_cell = [&](u32 column) { return !GivenCell::of(table, row, column).is_missing(); };
                if (std::ranges::none_of(tree_.node(node_of(target)).columns, has_cell)) continue;
                std::string &inner = scratch_[depth];
                inner.clear();
                put_fields(table, row, *field.message, node_of(target), inner, depth + 1);
                put_sized(out, field, inner);
            }
        }
    }

    static void put_cell(const RowTable &table, u64 row, const ProtoField &field, u32 column, std::string &out) {
        const GivenCell given = GivenCell::of(table, row, column);
        if (given.is_missing()) {
            const bool is_silent = field.type == ProtoType::text || field.type == ProtoType::bytes;
            const bool may_be = field.presence || field.repeated || is_silent;
            if (may_be || !table.columns[column].plan.kind) return;
            throw CellMistake{column, row, field.article() + std::string(", which the schema has no `optional` for"),
                              given.shown(), field.name};
        }
        if (field.repeated && given.kind == CellKind::list && put_list(field, given, out)) return;
        const u64 before = out.size();
        varint(out, field.number << 3 | static_cast<u32>(field.wire()));
        const u64 behind = out.size();
        if (!put(field, given, out))
            throw CellMistake{column, row, field.article() + std::string(" of the schema"), given.shown(), field.name};
        const bool is_zero = field.wire() == ProtoWire::length
            ? out.size() == behind + 1 : std::all_of(out.begin() + static_cast<i64>(behind), out.end(), is_zero_byte);
        if (!field.presence && is_zero) out.resize(before);   // it goes unwritten
    }

    // Numbers are packed, texts come one by one; nothing of a list without values. Whether all of them fit.
    static bool put_list(const ProtoField &field, const GivenCell &given, std::string &out) {
        ProtoField each = field;
        each.repeated = false;
        if (each.type == ProtoType::bytes || each.type == ProtoType::message || each.type == ProtoType::timestamp)
            return false;
        std::string made;
        for (u32 i = 0; i < given.elements->size; ++i) {
            GivenCell element{.unit = given.unit};
            given.table->read_cell(given.table->elements[given.elements->letters_at + i], element);
            if (each.type == ProtoType::text) varint(made, field.number << 3 | static_cast<u32>(ProtoWire::length));
            if (element.is_missing() || !put(each, element, made)) return false;
        }
        if (each.type == ProtoType::text) out += made;
        else if (!made.empty()) put_sized(out, field, made);
        return true;
    }

    static bool is_zero_byte(char byte) { return byte == 0; }

    static bool put(const ProtoField &field, const GivenCell &given, std::string &out) {
        const bool is_bytes = field.type == ProtoType::bytes;
        if (field.repeated || given.kind == CellKind::list || is_bytes != (given.kind == CellKind::bytes)) return false;
        switch (field.type) {
            case ProtoType::double_: return put_real<f64>(given, out);
            case ProtoType::float_: return put_real<f32>(given, out);
            case ProtoType::text: return put_text(given.words(), out);
            case ProtoType::boolean: return put_boolean(given, out);
            case ProtoType::enumeration: return put_symbol(*field.enumeration, given, out);
            case ProtoType::timestamp: return put_timestamp(given, out);
            case ProtoType::bytes: return put_text(std::string(given.letters), out);
            case ProtoType::message: return false;
            default: return put_whole(field.type, given, out);
        }
    }

    template <class T>
    static bool put_real(const GivenCell &given, std::string &out) {
        if (given.kind == CellKind::text) return false;
        const T value = static_cast<T>(given.kind == CellKind::boolean ? given.flag : given.real);
        if (std::isinf(value)) return false;
        append(out, value);
        return true;
    }

    static bool put_text(const std::string &text, std::string &out) {
        varint(out, text.size());
        out += text;
        return true;
    }

    static bool put_boolean(const GivenCell &given, std::string &out) {
        __int128 value;
        if (!given.whole(value) || value < 0 || value > 1) return false;
        out += static_cast<char>(value);
        return true;
    }

    static bool put_whole(ProtoType type, const GivenCell &given, std::string &out) {
        using Type = ProtoType;
        __int128 value;
        if (!given.whole(value)) return false;
        const bool is_long = type == Type::int64 || type == Type::uint64 || type == Type::sint64 ||
                             type == Type::fixed64 || type == Type::sfixed64;
        const bool is_unsigned = type == Type::uint32 || type == Type::uint64 || type == Type::fixed32 ||
                                 type == Type::fixed64;
        const __int128 most = (__int128{1} << ((is_long ? 64 : 32) - !is_unsigned)) - 1;
        if (value > most || value < (is_unsigned ? 0 : -most - 1)) return false;
        const i64 whole = static_cast<i64>(value);
        switch (type) {
            case Type::fixed32:
            case Type::sfixed32: append(out, static_cast<u32>(whole)); break;
            case Type::fixed64:
            case Type::sfixed64: append(out, whole); break;
            case Type::sint32:
            case Type::sint64: varint(out, static_cast<u64>(whole) << 1 ^ static_cast<u64>(whole >> 63)); break;
            default: varint(out, static_cast<u64>(whole));
        }
        return true;
    }

    // By its name, else by its number.
    static bool put_symbol(const ProtoEnum &of, const GivenCell &given, std::string &out) {
        const std::string text = given.words();
        const auto named = of.numbers.find(text);
        i64 number;
        if (named != of.numbers.end()) number = named->second;
        else if (given.kind == CellKind::boolean) number = given.flag;
        else if (!is_number(text, number)) return false;
        varint(out, static_cast<u64>(number));
        return true;
    }

    static bool is_number(const std::string &text, i64 &number) {
        const char *const end = text.data() + text.size();
        const auto [behind, problem] = std::from_chars(text.data(), end, number);
        const bool fits = number <= std::numeric_limits<i32>::max() && number >= std::numeric_limits<i32>::min();
        return !text.empty() && text.size() < 12 && behind == end && problem == std::errc() && fits;
    }

    static bool put_timestamp(const GivenCell &given, std::string &out) {
        const bool is_number = given.kind == CellKind::integer || given.kind == CellKind::number;
        if (!is_number || !(std::abs(given.real) < 9e18)) return false;
        const TimeUnit unit = given.unit ? *given.unit : TimeUnit{1, 1};
        __int128 nanos;
        if (given.kind == CellKind::number) nanos = static_cast<__int128>(std::floor(given.real));
        else given.whole(nanos);
        nanos = divided(nanos * unit.numerator * 1'000'000, unit.divisor);
        const __int128 seconds = divided(nanos, 1'000'000'000);
        std::string inner;
        const u64 parts[] = {static_cast<u64>(static_cast<i64>(seconds)),
                             static_cast<u64>(nanos - seconds * 1'000'000'000)};
        for (u32 i = 0; i < 2; ++i)
            if (parts[i]) varint(inner, (i + 1) << 3), varint(inner, parts[i]);
        return put_text(inner, out);
    }

    static __int128 divided(__int128 value, i64 by) { return value / by - (value < 0 && value % by); }

    template <class T>
    static void append(std::string &out, T value) {
        out.append(reinterpret_cast<const char *>(&value), sizeof value);
    }

    static void put_sized(std::string &out, const ProtoField &field, const std::string &message) {
        varint(out, field.number << 3 | static_cast<u32>(ProtoWire::length));
        varint(out, message.size());
        out += message;
    }

    static void varint(std::string &out, u64 value) {
        for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
        out += static_cast<char>(value);
    }

    const ProtoSchema schema_;
    const ProtoMessage &top_;
    KeyTree tree_;                                                     // where the table's columns stand in a row
    u64 naming_ = 0;
    std::string frame_;                                                // before each message: as a registry has it
    std::vector<std::string> scratch_ = std::vector<std::string>(DEEPEST);   // messages within each other
};

inline std::unique_ptr<RecordEncoder> protobuf_encoder(const Options &options) {
    return std::make_unique<ProtobufEncoder>(options);
}

}  // namespace st::formats
