// Avro records: one datum of the schema in the job's settings, or of one that a registry's frame names and that
// resolves to it. A record is a row; an array of records is many.
#pragma once
#include <unordered_map>

#include "decode/avro_bytes.h"
#include "decode/avro_cells.h"
#include "decode/avro_program.h"
#include "decode/schema_frame.h"
#include "decode/shaped_decoder.h"
#include "decode/utf8.h"

namespace st::formats {

class AvroDecoder final : public ShapedDecoder {
  public:
    AvroDecoder(std::shared_ptr<const DecodePlan> plan, const Options &options)
        : ShapedDecoder(std::move(plan)), reader_(options.get<std::string>("schema")),
          framed_(options.get<std::string>("frame") == "registry"),
          schemas_(options.get<std::shared_ptr<SchemaSource>>("schemas")) {
        if (!framed_) use(writers_[{}] = std::make_unique<Writer>(reader_, *plan_, writer_));
    }

    bool waits() const override { return waits_; }

  protected:
    void open(const char *bytes, u64 size) override {
        bytes_.load(bytes, size);
        cursor_ = bytes;
        waits_ = false;
        schema_.name = {};
        if (framed_ ? !open_frame() : size == 0 && refuse_empty()) return;
        if (!now_->program.refusal.empty()) return refuse_schema();
        if (shape_ == Shape::many) open_block();
    }

    void step(RowSink &sink, RowTally &tally) override {
        start_row(sink);
        const char *p = read(now_->program.parts[0].data(), cursor_, 0);
        if (!p) return refuse(path(NO_COLUMN, row_) + "." + failed_field(), bytes_.problem());
        if (shape_ == Shape::one && p != bytes_.end()) return refuse_rest(p);
        end_row(sink, tally);
        cursor_ = p;
        if (shape_ == Shape::one) end_record();
        else if (--left_ == 0) open_block();
    }

  private:
    // What data were written by, compiled for the job's columns.
    struct Writer {
        // The job's own schema.
        Writer(const AvroSchema &own, const DecodePlan &plan, const RowWriter &row)
            : schema(&own), program(AvroCompiler::compile(own, nullptr, plan, row)) {}
        Writer(std::string of_name, const SchemaSource::Answer &given, const AvroSchema &reader, const DecodePlan &plan,
               const RowWriter &row)
            : name(std::move(of_name)), answer(given) {
            program.refusal = answer.refusal;
            if (!answer.refusal.empty()) return;
            held = std::make_unique<AvroSchema>(answer.schema);
            schema = held.get();
            program = AvroCompiler::compile(*held, &reader, plan, row);
        }
        std::string name;
        SchemaSource::Answer answer;
        std::unique_ptr<AvroSchema> held;
        const AvroSchema *schema = nullptr;   // none where there is a refusal
        AvroProgram program;
    };

    static constexpr u64 MOST_WRITERS = 4096;   // records may name any number of schemas, and be refused for it
    static constexpr u32 DEEPEST = 64;   // records within each other, but those that always take as many bytes

    void use(const std::unique_ptr<Writer> &writer) {
        now_ = writer.get();
        shape_ = now_shape_ = now_->schema && now_->schema->many() ? Shape::many : Shape::one;
    }

    bool refuse_empty() { return refuse("$", "expected a record, got an empty value"), true; }

    // Whether the writer's schema is at hand.
    bool open_frame() {
        const SchemaFrame frame = SchemaFrame::of(at_hand());
        SchemaName name;
        const char *const behind = frame.read_all(name);
        if (!behind) {
            shape_ = Shape::one;
            return refuse("$", frame.problem()), false;
        }
        cursor_ = frame.datum(at_hand(), behind);
        schema_.name = name;
        if (now_ && name == newest_name_) return shape_ = now_shape_, true;
        if (writers_.size() > MOST_WRITERS) now_ = nullptr, writers_.clear();
        std::unique_ptr<Writer> &writer = writers_[name];
        if (!writer) {
            const std::optional<SchemaSource::Answer> answer = schemas_ ? schemas_->ask(name.text()) : std::nullopt;
            waits_ = !answer;
            if (waits_) return refuse("$", "schema " + name.text() + " is not known yet"), false;
            writer = std::make_unique<Writer>(name.text(), *answer, reader_, *plan_, writer_);
        }
        newest_name_ = name;
        schema_.answer = &writer->answer;
        use(writer);
        return true;
    }

    void refuse_schema() {
        const AvroProgram &program = now_->program;
        refuse(program.refused_field.empty() ? "$" : "$." + program.refused_field,
               "schema " + now_->name + ": " + program.refusal);
    }

    void refuse_rest(const char *p) {
        bytes_.broken(p, "expected the record's end, got " + std::to_string(bytes_.left(p)) + " more bytes");
        refuse(path(NO_COLUMN, row_), bytes_.problem());
    }

    // The next rows, or the record's end.
    void open_block() {
        u64 size;
        bool sized;
        const char *const start = cursor_;
        const char *p = bytes_.block(start, left_, size, sized);
        if (p && left_ > bytes_.left(p)) p = bytes_.claim(start, p, left_);   // of those whose size is told
        if (!p) return refuse(path(NO_COLUMN, row_), bytes_.problem());
        cursor_ = p;
        if (left_) return;
        if (p != bytes_.end()) return refuse_rest(p);
        end_record();
    }

    // A part's steps up to its end. What follows the bytes they read, or nullptr.
    const char *read(const AvroOp *op, const char *p, u32 depth) {
        for (;; ++op) {
            const char *const from = p;
            if (op->null_byte != AvroOp::NO_NULL) {
                bool is_null;
                p = read_branch(*op, p, is_null);
                if (p && is_null) continue;
            }
            if (op->code == AvroCode::end) return p;
            if (p) [[likely]] p = take(*op, p, depth);
            if (p) [[likely]] continue;
            failed_ = op, failed_at_ = from;   // the row's own step is the last to say so
            return nullptr;
        }
    }

    // The row's field that could not be read: of some that are read together the one that has not all its bytes.
    const std::string &failed_field() const {
        const std::vector<AvroField> &fields = now_->schema->row().fields;
        u32 field = failed_->field;
        const bool together = failed_->code == AvroCode::fixed || failed_->code == AvroCode::f32 ||
                              failed_->code == AvroCode::f64;
        if (together && !failed_->nested && failed_->null_byte == AvroOp::NO_NULL) {
            i64 left = static_cast<i64>(bytes_.left(failed_at_));
            while ((left -= fields[field].type->bytes_each) >= 0) ++field;
        }
        return fields[field].name;
    }

    [[gnu::always_inline]] const char *read_branch(const AvroOp &op, const char *p, bool &is_null) {
        if (p < bytes_.end()) [[likely]] {
            const u8 byte = static_cast<u8>(*p);
            is_null = byte == op.null_byte;
            if ((byte | 2) == 2) [[likely]] return p + 1;
        }
        u64 branch = 0;   // of one that is written longer than it need be
        p = bytes_.branch(p, 2, branch);
        is_null = 2 * branch == op.null_byte;
        return p;
    }

    [[gnu::always_inline]] const char *take(const AvroOp &op, const char *p, u32 depth) {
        const u32 column = static_cast<u32>(op.column);
        i64 value;
        u64 size;
        switch (op.code) {
            case AvroCode::fixed: return op.count <= bytes_.left(p) ? p + op.count : bytes_.cut(p);
            case AvroCode::varint: return bytes_.number(p, value);
            case AvroCode::sized: return (p = bytes_.length(p, size)) ? p + size : nullptr;
            case AvroCode::f32: return reals<f32>(op, p);
            case AvroCode::f64: return reals<f64>(op, p);
            case AvroCode::whole:
                if (!(p = bytes_.number(p, value))) return nullptr;
                if (op.place == NO_FLOAT || !writer_.put_checked(column, op.place, static_cast<f64>(value)))
                    writer_.integer(column, magnitude(value), value < 0);
                return p;
            case AvroCode::text:
                if (!(p = bytes_.length(p, size))) return nullptr;
                put_text(column, {p, size});
                return p + size;
            case AvroCode::symbol:
                if ((p = bytes_.number(p, value))) put_symbol(op, value);
                return p;
            default: return take_rare(op, p, depth);
        }
    }

    [[gnu::noinline]] const char *take_rare(const AvroOp &op, const char *p, u32 depth) {
        const u32 column = static_cast<u32>(op.column);
        i64 value;
        u64 branch, size;
        switch (op.code) {
            case AvroCode::call:
                if (depth + op.inside >= DEEPEST)
                    return bytes_.broken(p, "records nested deeper than " + std::to_string(DEEPEST));
                return read(now_->program.parts[op.at].data(), p, depth + op.inside + 1);
            case AvroCode::blocks: return pass_blocks(op, p, depth);
            case AvroCode::list: return read_list(op, p, depth);
            case AvroCode::choice:
                p = bytes_.branch(p, op.count, branch);
                return p ? read(now_->program.parts[now_->program.branches[op.at + branch]].data(), p, depth) : nullptr;
            case AvroCode::boolean:
                if (p == bytes_.end()) return bytes_.cut(p);
                if (static_cast<u8>(*p) <= 1) writer_.boolean(column, *p);
                else writer_.wrong(column, "a boolean of value " + std::to_string(static_cast<u8>(*p)));
                return p + 1;
            case AvroCode::moment:
                if ((p = bytes_.number(p, value)))
                    plan_->columns[column].kind->moment(writer_, column, value, op.type->unit);
                return p;
            case AvroCode::decimal:
                if (!(p = sized(op, p, size))) return nullptr;
                put_decimal(writer_, column, p, size, op.type->scale);
                return p + size;
            case AvroCode::uuid:
                if (!(p = sized(op, p, size))) return nullptr;
                put_uuid(writer_, column, p);
                return p + size;
            case AvroCode::bytes:
                if (!(p = sized(op, p, size))) return nullptr;
                writer_.bytes(column, {p, size});
                return p + size;
            case AvroCode::constant: put_constant(op); return p;
            default:
                writer_.wrong(column, op.type->article());
                return read(now_->program.parts[op.at].data(), p, depth);
        }
    }

    // A block that tells its size is passed over by that, whatever is in it.
    const char *read_list(const AvroOp &op, const char *p, u32 depth) {
        const u32 column = static_cast<u32>(op.column);
        if (writer_.in_list()) return writer_.wrong(column, op.type->article()), pass_elements(op, p, depth);
        writer_.open_list(column);
        p = pass_elements(op, p, depth);
        if (p) writer_.close_list(column);
        return p;
    }

    const char *pass_elements(const AvroOp &op, const char *p, u32 depth) {
        for (;;) {
            u64 count, size;
            bool sized;
            if (!(p = bytes_.block(p, count, size, sized))) return nullptr;
            if (count == 0) return p;
            const char *const behind = p + size, *const end = bytes_.end();
            if (sized) bytes_.end_at(behind);
            for (; count && p; --count) {
                writer_.next_element();
                p = read(now_->program.parts[op.at].data(), p, depth);
            }
            if (!sized) {
                if (!p) return nullptr;
                continue;
            }
            bytes_.end_at(end);
            if (!p) writer_.wrong(static_cast<u32>(op.column), "a block that is not as long as it says");
            p = behind;
        }
    }

    const char *pass_blocks(const AvroOp &op, const char *p, u32 depth) {
        for (;;) {
            u64 count, size;
            bool sized;
            const char *const start = p;
            if (!(p = bytes_.block(p, count, size, sized))) return nullptr;
            if (count == 0) return p;
            if (sized) {
                p += size;
            } else if (op.count != AvroOp::VARIABLE) {
                if (op.count && count > bytes_.left(p) / op.count) return bytes_.claim(start, p, count);
                p += count * op.count;
            } else {
                for (; count; --count)
                    if (!(p = read(now_->program.parts[op.at].data(), p, depth))) return nullptr;
            }
        }
    }

    static u64 magnitude(i64 value) { return value < 0 ? 0 - static_cast<u64>(value) : static_cast<u64>(value); }

    void put_constant(const AvroOp &op) {
        const u32 column = static_cast<u32>(op.column);
        const JsonValue &value = *op.value;
        if (value.kind == JsonValue::boolean) writer_.boolean(column, value.flag);
        if (value.kind == JsonValue::text) put_text(column, value.letters);
        if (value.kind != JsonValue::number) return;
        if (op.type->kind != AvroType::int_ && op.type->kind != AvroType::long_)
            return writer_.number(column, value.as_number());
        const i64 whole = value.as_whole();
        if (op.type->unit_counts()) plan_->columns[column].kind->moment(writer_, column, whole, op.type->unit);
        else writer_.integer(column, magnitude(whole), whole < 0);
    }

    // Bytes, or those of a fixed type.
    const char *sized(const AvroOp &op, const char *p, u64 &size) {
        if (op.type->kind != AvroType::fixed) return bytes_.length(p, size);
        size = static_cast<u64>(op.type->size);
        return size <= bytes_.left(p) ? p : bytes_.cut(p);
    }

    template <class T>
    [[gnu::always_inline]] const char *reals(const AvroOp &op, const char *p) {
        const u64 count = std::min<u64>(op.count, bytes_.left(p) / sizeof(T));
        u64 i = 0;
        if (op.place != NO_FLOAT)
            i = writer_.put_run<T>(op.column, count, [p](u64 at, T &value) {
                value = load_little<T>(p + at * sizeof(T));
                return true;
            });
        for (; i < count; ++i) 
            writer_.number(static_cast<u32>(op.column) + static_cast<u32>(i), load_little<T>(p + i * sizeof(T)));
        return count == op.count ? p + count * sizeof(T) : bytes_.cut(p + count * sizeof(T));
    }

    void put_text(u32 column, std::string_view text) {
        if (is_ascii(text) || is_utf8(text)) writer_.text(column, text);
        else writer_.wrong(column, "text that is not UTF-8");
    }

    void put_symbol(const AvroOp &op, i64 value) {
        const u32 column = static_cast<u32>(op.column);
        if (static_cast<u64>(value) >= op.count)
            return writer_.wrong(column, "symbol " + std::to_string(value) + " of " + std::to_string(op.count));
        const AvroProgram::Symbol &symbol = now_->program.symbols[op.at + static_cast<u64>(value)];
        if (symbol.word == Kind::NO_WORD) writer_.text(column, symbol.text);
        else writer_.word(column, symbol.text, symbol.word);
    }

    const AvroSchema reader_;
    const bool framed_;
    const std::shared_ptr<SchemaSource> schemas_;
    std::unordered_map<SchemaName, std::unique_ptr<Writer>, SchemaName::Hash> writers_;   // of bare records no name
    const Writer *now_ = nullptr;
    SchemaName newest_name_;             // now_'s
    Shape now_shape_ = Shape::one;       // the same
    bool waits_ = false;
    AvroBytes bytes_;
    const char *cursor_ = nullptr;
    u64 left_ = 0;                       // rows of the block at hand
    const AvroOp *failed_ = nullptr;     // of the row, with what it began at
    const char *failed_at_ = nullptr;
};

inline std::unique_ptr<Decoder> avro(std::shared_ptr<const DecodePlan> plan, const Options &options) {
    return std::make_unique<AvroDecoder>(std::move(plan), options);
}

}  // namespace st::formats
