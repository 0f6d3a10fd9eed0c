// Avro of a table, by the schema in the job's settings: a datum is a row, or an array of rows where the schema says so.
#pragma once
#include <cstring>
#include <limits>

#include "decode/avro_schema.h"
#include "decode/given_cell.h"
#include "decode/record_encoder.h"

namespace st::formats {

class AvroEncoder final : public RecordEncoder {
  public:
    explicit AvroEncoder(const Options &options)
        : schema_(options.get<std::string>("schema")), frame_(registry_frame(options)) {}

    void encode(const RowTable &table, const PickedRows &rows, std::string &out) override {
        if (table.naming != naming_) learn_columns(table);
        out = frame_;
        out_ = &out;
        if (schema_.many() && rows.count) number(static_cast<i64>(rows.count));
        for (u64 i = 0; i < rows.count; ++i) put_fields(table, rows[i], schema_.row(), 0);
        if (schema_.many()) number(0);
    }

    u64 most_rows() const override { return schema_.many() ? RecordEncoder::most_rows() : 1; }

  private:
    using Given = GivenCell;

    void learn_columns(const RowTable &table) {
        naming_ = table.naming;
        tree_ = KeyTree();
        for (u32 c = 0; c < table.columns.size(); ++c) {
            const PlanColumn &plan = table.columns[c].plan;
            if (plan.from.empty()) tree_.add(c, plan.name, plan.path);
        }
        tree_.finish();
    }

    void put_fields(const RowTable &table, u64 row, const AvroType &record, u32 node) {
        for (const AvroField &field : record.fields) {
            const i32 target = tree_.node(node).keys.find(field.name);
            const bool is_node = target < 0 && target != NO_COLUMN && !tree_.node(node_of(target)).columns.empty();
            if (is_node && put_nested(table, row, *field.type, node_of(target))) continue;
            put_field(table, row, field, target);
        }
    }

    // A record that columns lie in: null where all are missing and the schema lets it be.
    bool put_nested(const RowTable &table, u64 row, const AvroType &type, u32 node) {
        if (type.kind == AvroType::record) return put_fields(table, row, type, node), true;
        u32 null_branch;
        const AvroType *record = type.nullable(null_branch);
        if (!record || record->kind != AvroType::record) return false;
        const auto has_cell = [&](u32 column) { return Given::of(table, row, column).kind != CellKind::missing; };
        const bool is_null = std::ranges::none_of(tree_.node(node).columns, has_cell);
        number(is_null ? null_branch : 1 - null_branch);
        if (!is_null) put_fields(table, row, *record, node);
        return true;
    }

    void put_field(const RowTable &table, u64 row, const AvroField &field, i32 column) {
        const Given given = column < 0 ? Given() : Given::of(table, row, static_cast<u32>(column));
        if (put(*field.type, given, true) || put(*field.type, given, false)) return;
        const bool is_missing = given.kind == CellKind::missing;
        if (is_missing && field.otherwise) return put_default(*field.type, *field.otherwise);
        const char *const why = is_missing ? ", which the schema has no null and no default for" : " of the schema";
        throw CellMistake{static_cast<u32>(std::max(0, column)), row, field.type->article() + std::string(why),
                          given.shown(), field.name};
    }

    // Writes a cell where it fits the type: as it is (`exact`), or as what it stands for.
    bool put(const AvroType &type, const Given &given, bool exact) {
        switch (type.kind) {
            case AvroType::null: return given.kind == CellKind::missing;
            case AvroType::boolean: return put_boolean(given, exact);
            case AvroType::int_:
            case AvroType::long_: return put_whole(type, given, exact);
            case AvroType::float_: return put_real<f32>(given, exact);
            case AvroType::double_: return put_real<f64>(given, exact);
            case AvroType::string: return put_text(given, exact);
            case AvroType::enumeration: return put_symbol(type, given, exact);
            case AvroType::bytes:
            case AvroType::fixed:
                if (given.kind == CellKind::bytes) return put_bytes(type, given.letters);
                return type.logical == AvroType::decimal && put_decimal(type, given);
            case AvroType::choice: return put_choice(type, given, exact);
            case AvroType::array: return given.kind == CellKind::list && put_list(type, given, exact);
            default: return false;
        }
    }

    bool put_bytes(const AvroType &type, std::string_view raw) {
        if (type.logical == AvroType::decimal || type.logical == AvroType::uuid) return false;
        if (type.kind == AvroType::bytes) return append(raw), true;
        if (raw.size() != static_cast<u64>(type.size)) return false;
        *out_ += raw;
        return true;
    }

    bool put_list(const AvroType &type, const Given &given, bool exact) {
        const u64 before = out_->size();
        if (given.elements->size) number(given.elements->size);
        for (u32 i = 0; i < given.elements->size; ++i) {
            Given element{.unit = given.unit};
            given.table->read_cell(given.table->elements[given.elements->letters_at + i], element);
            if (put(*type.inner[0], element, exact)) continue;
            out_->resize(before);
            return false;
        }
        number(0);
        return true;
    }

    bool put_choice(const AvroType &type, const Given &given, bool exact) {
        const u64 before = out_->size();
        for (u64 branch = 0; branch < type.inner.size(); ++branch) {
            number(static_cast<i64>(branch));
            if (put(*type.inner[branch], given, exact)) return true;
            out_->resize(before);
        }
        return false;
    }

    bool put_boolean(const Given &given, bool exact) {
        const bool is_flag = given.kind == CellKind::boolean;
        const bool is_number = given.kind == CellKind::integer || given.kind == CellKind::number;
        if (!is_flag && (exact || !is_number || (given.real != 0 && given.real != 1))) return false;
        *out_ += static_cast<char>(is_flag ? given.flag : given.real == 1);
        return true;
    }

    bool put_whole(const AvroType &type, const Given &given, bool exact) {
        const bool is_whole = given.kind == CellKind::integer || (!exact && given.kind == CellKind::boolean);
        const bool is_time = given.unit && type.unit_counts();
        __int128 value = given.kind == CellKind::boolean ? given.flag : given.magnitude;
        if (given.kind == CellKind::integer && given.flag) value = -value;
        if (!is_whole) {
            if (exact || given.kind != CellKind::number || !(is_time || is_exact_whole(given.real))) return false;
            if (!(std::abs(given.real) < 9e18)) return false;
            value = is_time ? static_cast<__int128>(std::floor(given.real)) : static_cast<__int128>(given.real);
        }
        if (is_time) {
            const __int128 up = static_cast<__int128>(given.unit->numerator) * type.unit.divisor;
            const __int128 down = static_cast<__int128>(given.unit->divisor) * type.unit.numerator;
            const __int128 scaled = value * up;
            value = scaled / down - (scaled < 0 && scaled % down);
        }
        const bool is_int = type.kind == AvroType::int_;
        const i64 most = is_int ? std::numeric_limits<i32>::max() : std::numeric_limits<i64>::max();
        if (value > most || value < -static_cast<__int128>(most) - 1) return false;
        number(static_cast<i64>(value));
        return true;
    }

    template <class T>
    bool put_real(const Given &given, bool exact) {
        const T value = static_cast<T>(given.kind == CellKind::boolean ? given.flag : given.real);
        const bool is_real = given.kind == CellKind::number;
        if (exact && (!is_real || static_cast<f64>(value) != given.real)) return false;
        if (given.kind == CellKind::missing || given.kind == CellKind::text || std::isinf(value)) return false;
        if (given.kind == CellKind::list) return false;
        out_->append(reinterpret_cast<const char *>(&value), sizeof value);
        return true;
    }

    bool put_text(const Given &given, bool exact) {
        if (!is_word(given, exact)) return false;
        append(given.words());
        return true;
    }

    bool put_symbol(const AvroType &type, const Given &given, bool exact) {
        if (!is_word(given, exact)) return false;
        const auto found = std::find(type.symbols.begin(), type.symbols.end(), given.words());
        if (found == type.symbols.end()) return false;
        number(found - type.symbols.begin());
        return true;
    }

    static bool is_word(const Given &given, bool exact) {
        return given.kind == CellKind::text || (!exact && !given.is_missing() && given.kind < CellKind::list);
    }

    // Of a number that a decimal of the type's scale is.
    bool put_decimal(const AvroType &type, const Given &given) {
        if (given.kind != CellKind::number && given.kind != CellKind::integer) return false;
        f64 power = 1;
        for (u32 i = 0; i < type.scale; ++i) power *= 10;
        const f64 unscaled = std::nearbyint(given.real * power);
        if (!(std::abs(unscaled) < 9e18) || unscaled / power != given.real) return false;
        const i64 value = static_cast<i64>(unscaled);
        const u64 size = type.kind == AvroType::fixed ? static_cast<u64>(type.size) : 8;
        if (size < 8 && value >> (8 * size - (size > 0)) != (value < 0 ? -1 : 0)) return false;
        if (type.kind == AvroType::bytes) number(8);
        for (u64 at = size; at-- > 0;) *out_ += static_cast<char>(at < 8 ? value >> 8 * at : value < 0 ? -1 : 0);
        return true;
    }

    // A field's default, which the settings hold as JSON.
    void put_default(const AvroType &type, const JsonValue &given) {
        switch (type.kind) {
            case AvroType::null: return;
            case AvroType::boolean: *out_ += static_cast<char>(given.flag); return;
            case AvroType::int_:
            case AvroType::long_: return number(given.as_whole());
            case AvroType::float_: return put_default_real<f32>(given);
            case AvroType::double_: return put_default_real<f64>(given);
            case AvroType::string: return append(given.letters);
            case AvroType::bytes: return append(bytes_of(given.letters));
            case AvroType::fixed: *out_ += bytes_of(given.letters); return;
            case AvroType::enumeration:
                put_symbol(type, {.kind = CellKind::text, .letters = given.letters}, true);
                return;
            case AvroType::choice: number(0); return put_default(*type.inner[0], given);
            case AvroType::record:
                for (const AvroField &field : type.fields) {
                    const JsonValue *inner = given.find(field.name);
                    put_default(*field.type, inner ? *inner : field.otherwise.value());
                }
                return;
            default: break;
        }
        if (!given.items.empty()) number(static_cast<i64>(given.items.size()));
        for (u64 i = 0; i < given.items.size(); ++i) {
            if (type.kind == AvroType::map) append(given.keys[i]);
            put_default(*type.inner[0], given.items[i]);
        }
        number(0);
    }

    // A default of bytes is a text of code points below 256.
    static std::string bytes_of(const std::string &utf8) {
        std::string bytes;
        for (u64 i = 0; i < utf8.size(); ++i) {
            const u8 lead = static_cast<u8>(utf8[i]);
            if (lead < 0x80) bytes += utf8[i];
            else if (i + 1 < utf8.size()) bytes += static_cast<char>(lead << 6 | (utf8[++i] & 0x3f));
        }
        return bytes;
    }

    template <class T>
    void put_default_real(const JsonValue &given) {
        const T value = static_cast<T>(given.as_number());
        out_->append(reinterpret_cast<const char *>(&value), sizeof value);
    }

    void append(std::string_view text) {
        number(static_cast<i64>(text.size()));
        *out_ += text;
    }

    void number(i64 value) {
        u64 raw = static_cast<u64>(value) << 1 ^ static_cast<u64>(value >> 63);
        for (; raw >= 0x80; raw >>= 7) *out_ += static_cast<char>(raw | 0x80);
        *out_ += static_cast<char>(raw);
    }

    const AvroSchema schema_;
    KeyTree tree_;               // where the table's columns stand in a row
    u64 naming_ = 0;
    std::string frame_;          // before each datum: of a registry, 0 and the schema's id
    std::string *out_ = nullptr;
};

inline std::unique_ptr<RecordEncoder> avro_encoder(const Options &options) {
    return std::make_unique<AvroEncoder>(options);
}

}  // namespace st::formats
