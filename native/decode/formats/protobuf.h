// Protobuf records by a schema in the job's settings: a message of it, or of one that a registry's frame names, with
// which of its messages it is, and that resolves to it. A message is a row; one that has no other field than many
// messages is many rows.
#pragma once
#include "decode/protobuf_many.h"
#include "decode/protobuf_place.h"
#include "decode/protobuf_writer.h"
#include "decode/schema_frame.h"
#include "decode/shaped_decoder.h"
#include "decode/utf8.h"

namespace st::formats {

class ProtobufDecoder final : public ShapedDecoder {
  public:
    ProtobufDecoder(std::shared_ptr<const DecodePlan> plan, const Options &options)
        : ShapedDecoder(std::move(plan)), own_(options.get<std::string>("schema")),
          reader_(own_.message(options.get<std::string>("message"))),
          framed_(options.get<std::string>("frame") == "registry"),
          schemas_(options.get<std::shared_ptr<SchemaSource>>("schemas")) {
        if (framed_) return;
        use(*(writers_[""] = std::make_unique<Writer>(reader_, *plan_, writer_)));
    }

    bool waits() const override { return waits_; }

  protected:
    void open(const char *bytes, u64 size) override {
        bytes_.load(bytes, size);
        cursor_ = bytes;
        waits_ = false;
        schema_.name = {};
        if (!framed_) {
            if (size) is_refused(bytes, size);   // an empty message is one
            return;
        }
        if (!open_frame()) return;
        if (!now_->program.refusal.empty()) refuse_schema();
    }

    void step(RowSink &sink, RowTally &tally) override {
        const char *row_end = bytes_.end();
        failed_ = nullptr;
        if (shape_ == Shape::many && !find_row(row_end)) return;
        start_row(sink);
        without_number_.clear();
        lists_.clear();
        const char *p = read(now_->program.parts[0], cursor_, row_end, 0);
        if (!p) return refuse(path(NO_COLUMN, row_) + (failed_ ? "." + *failed_->name : ""), bytes_.problem());
        lists_.put(writer_, [this](const Step &of, const ProtoMany::Element &each) { put_element(of, each); });
        end_row(sink, tally);
        cursor_ = p;
        if (shape_ == Shape::one) end_record();
    }

  private:
    using Step = ProtoStep;
    using Part = ProtoProgram::Part;

    using Writer = ProtoWriter;

    static constexpr u64 MOST_WRITERS = 4096;   // records may name any number of schemas, and be refused for it
    static constexpr u32 DEEPEST = 64;          // messages within each other

    void use(const Writer &writer) {
        now_ = &writer;
        many_ = writer.message ? writer.message->many() : nullptr;
        shape_ = many_ ? Shape::many : Shape::one;
    }

    // Whether the writer's schema is at hand. Frames of the same bytes name the same message.
    bool open_frame() {
        const SchemaFrame frame = SchemaFrame::of(at_hand());
        const u64 known = frame_.size();
        if (now_ && known && (frame.in_header ? frame.size == known : frame.size >= known) &&
            std::memcmp(frame.bytes, frame_.data(), known) == 0) {
            cursor_ = frame.datum(at_hand(), frame.bytes + known);
            schema_.name = newest_name_;
            shape_ = many_ ? Shape::many : Shape::one;
            return true;
        }
        return open_new(frame);
    }

    [[gnu::noinline]] bool open_new(const SchemaFrame &frame) {
        SchemaName name;
        std::vector<i64> place;
        const char *const behind = read_frame(frame, name, place);
        if (!behind) return shape_ = Shape::one, false;
        if (writers_.size() > MOST_WRITERS) now_ = nullptr, frame_.clear(), writers_.clear();
        std::unique_ptr<Writer> &writer = writers_[std::string(frame.bytes, behind)];
        if (!writer) {
            const std::optional<SchemaSource::Answer> answer = schemas_ ? schemas_->ask(name.text()) : std::nullopt;
            waits_ = !answer;
            if (waits_) {
                shape_ = Shape::one;
                return refuse("$", "schema " + name.text() + " is not known yet"), false;
            }
            writer = std::make_unique<Writer>(name.text(), place, *answer, reader_, *plan_, writer_);
        }
        frame_.assign(frame.bytes, behind);
        cursor_ = frame.datum(at_hand(), behind);
        newest_name_ = name;
        schema_ = {name, &writer->answer};
        use(*writer);
        return true;
    }

    // What follows the frame, or nullptr, and the record is refused.
    const char *read_frame(const SchemaFrame &frame, SchemaName &name, std::vector<i64> &place) {
        const char *const p = frame.read(name);
        if (!p) return refuse("$", frame.problem()), nullptr;
        ProtoBytes bytes;
        bytes.load(frame.bytes, frame.size);
        const char *behind = read_place(bytes, p, frame.end(), place);
        if (behind && frame.in_header && behind != frame.end())
            behind = bytes.broken(behind, "expected the header's end, got " + std::to_string(frame.end() - behind) +
                                              " more bytes");
        if (!behind) refuse("$", frame.told(bytes.problem()));
        return behind;
    }

    void refuse_schema() {
        const ProtoProgram &program = now_->program;
        refuse(program.refused_field.empty() ? "$" : "$." + program.refused_field,
               "schema " + now_->name + ": " + program.refusal);
    }

    // Of a record of many rows: where the next one begins and ends; false: there is none, or the record is refused.
    bool find_row(const char *&row_end) {
        const char *const end = bytes_.end(), *p = cursor_;
        while (p < end) {
            u32 number;
            u8 wire;
            u64 size;
            if (!(p = bytes_.tag(p, end, number, wire))) break;
            if (number != many_->number) {
                if (!(p = bytes_.skip(p, end, wire))) break;
                continue;
            }
            if (wire != static_cast<u8>(ProtoWire::length)) {
                p = bytes_.broken(p, "expected many messages, got wire type " + std::to_string(wire));
                break;
            }
            if (!(p = bytes_.length(p, end, size))) break;
            cursor_ = p;
            row_end = p + size;
            return true;
        }
        if (p) end_record();
        else refuse(path(NO_COLUMN, row_), bytes_.problem());
        return false;
    }

    // A message's fields up to its end, which is given back; or nullptr. Most come in the order of their numbers.
    const char *read(const Part &part, const char *p, const char *const end, u32 depth) {
        const Step *next = part.steps.data(), *const last = next + part.steps.size();
        u64 silent = 0;
        bool in_order = true;
        while (p < end) {
            const Step *step = next;
            if (next != last && end - p >= 2 && next->tag.matches(p)) [[likely]] {
                if (next->run > 1) {
                    const u64 read = next->type == ProtoType::float_ ? reals<f32>(next, p, end) :
                                                                       reals<f64>(next, p, end);
                    silent += next->silent ? read : 0;
                    next += read;
                    if (read) continue;
                }
                p += step->tag.bytes;
                if (depth == 0) failed_ = step;
            } else {
                u32 number;
                u8 wire;
                if (depth == 0) failed_ = nullptr;
                if (!(p = bytes_.tag(p, end, number, wire))) return nullptr;
                step = find(part, next, number, in_order);
                if (!step) {
                    if (!(p = bytes_.skip(p, end, wire))) return nullptr;
                    continue;
                }
                if (depth == 0) failed_ = step;
                if (wire != static_cast<u8>(step->wire)) [[unlikely]] {
                    if (!(p = mismatch(*step, p, end, wire))) return nullptr;
                    in_order = false;
                    continue;
                }
            }
            silent += step->silent;
            next = step + 1;
            if (!(p = take(*step, p, end, depth))) [[unlikely]] return nullptr;
            if (step->others != Step::NONE) [[unlikely]] forget(step->others);
        }
        if (silent != part.silent.size() || !in_order) {   // those before `next` are all there, or any may not be
            const u32 before = next == last ? static_cast<u32>(part.silent.size()) : next->silent_before;
            put_silent(part, in_order && silent == before ? before : 0);
        }
        return p;
    }

    static const Step *find(const Part &part, const Step *next, u32 number, bool &in_order) {
        const Step *const first = part.steps.data(), *const last = first + part.steps.size();
        if (next != first && number <= next[-1].number) {
            in_order = false;
            next = std::lower_bound(first, next, number, [](const Step &s, u32 n) { return s.number < n; });
        } else {
            for (u32 near = 0; next != last && next->number < number && near < 8; ++near) ++next;
            next = std::lower_bound(next, last, number, [](const Step &s, u32 n) { return s.number < n; });
        }
        return next != last && next->number == number ? next : nullptr;
    }

    // Plain numbers side by side, as long as their tags follow each other and they fit: how many, and p behind them.
    template <class T>
    [[gnu::always_inline]] u64 reals(const Step *steps, const char *&p, const char *const end) {
        if (steps->run_at != Step::NONE) {
            const ProtoRun &run = now_->program.runs[steps->run_at];
            if (run.matches(p, end)) [[likely]] {
                const auto value_at = [from = p, places = run.places.data()](u64 i) {
                    return load_little<T>(from + places[i]);
                };
                if (writer_.put_all(static_cast<u32>(steps->column), steps->run, value_at)) [[likely]] {
                    p += run.bytes;
                    return steps->run;
                }
            }
        }
        const char *at = p, *behind = p;
        u64 asked = 0;
        const u64 read = writer_.put_run<T>(steps->column, steps->run, [&](u64 i, T &value) {
            const ProtoTag &tag = steps[i].tag;
            if (static_cast<u64>(end - behind) < sizeof(T) + tag.bytes || !tag.matches(behind)) return false;
            at = behind;
            value = load_little<T>(at + tag.bytes);
            behind = at + tag.bytes + sizeof(T);
            ++asked;
            return true;
        });
        p = asked > read ? at : behind;
        return read;
    }

    // A value of another wire type than its field's: passed over, and no cell.
    const char *mismatch(const Step &step, const char *p, const char *end, u8 wire) {
        if (step.list != Step::NONE) return lists_.take(step, bytes_, p, end, wire);
        if (!(p = bytes_.skip(p, end, wire))) return nullptr;
        if (step.is_cell)
            writer_.wrong(static_cast<u32>(step.column), step.is_odd ? std::string(step.article) :
                          "wire type " + std::to_string(wire) + " in the place of " + step.article);
        if (step.below != Step::NONE) forget(step.below);
        if (step.others != Step::NONE) forget(step.others);
        return p;
    }

    // The columns of a list have no cell after all.
    void forget(u32 list) {
        writer_.missing(now_->program.lists[list]);
        lists_.drop(now_->program.lists[list]);
    }

    [[gnu::always_inline]] const char *take(const Step &step, const char *p, const char *end, u32 depth) {
        const u32 column = static_cast<u32>(step.column);
        u64 value;
        if (!step.is_cell) {
            if (step.part == Step::NONE) return bytes_.skip(p, end, static_cast<u8>(step.wire));
            if (!(p = bytes_.length(p, end, value))) return nullptr;
            if (depth == DEEPEST)
                return bytes_.broken(p, "messages nested deeper than " + std::to_string(DEEPEST));
            return read(now_->program.parts[step.part], p, p + value, depth + 1);
        }
        if (step.is_odd) return take_odd(step, p, end);
        switch (step.wire) {
            case ProtoWire::varint:
                if ((p = bytes_.varint(p, end, value))) [[likely]] put_varint(step, column, value);
                return p;
            case ProtoWire::fixed32:
                if (end - p < 4) return bytes_.fixed(p, end, 4);
                if (step.type == ProtoType::float_) put_real(step, column, load_little<f32>(p));
                else if (step.type == ProtoType::fixed32) put_whole(step, column, load_little<u32>(p));
                else put_whole(step, column, load_little<i32>(p));
                return p + 4;
            case ProtoWire::fixed64:
                if (end - p < 8) return bytes_.fixed(p, end, 8);
                if (step.type == ProtoType::double_) put_real(step, column, load_little<f64>(p));
                else if (step.type == ProtoType::fixed64) put_large(step, column, load_little<u64>(p));
                else put_whole(step, column, load_little<i64>(p));
                return p + 8;
            default: break;
        }
        if (!(p = bytes_.length(p, end, value))) return nullptr;
        if (step.type == ProtoType::timestamp)
            return put_timestamp(bytes_, writer_, *plan_->columns[column].kind, column, p, p + value);
        if (step.type == ProtoType::bytes) writer_.bytes(column, {p, value});
        else put_text(column, {p, value});
        return p + value;
    }

    [[gnu::noinline]] const char *take_odd(const Step &step, const char *p, const char *end) {
        if (step.list != Step::NONE) return lists_.take(step, bytes_, p, end, static_cast<u8>(step.wire));
        if ((p = bytes_.skip(p, end, static_cast<u8>(step.wire))))
            writer_.wrong(static_cast<u32>(step.column), step.article);
        return p;
    }

    [[gnu::always_inline]] void put_varint(const Step &step, u32 column, u64 value) {
        switch (step.type) {
            case ProtoType::int32: return put_whole(step, column, static_cast<i32>(value));
            case ProtoType::int64: return put_whole(step, column, static_cast<i64>(value));
            case ProtoType::uint32: return put_whole(step, column, static_cast<u32>(value));
            case ProtoType::uint64: return put_large(step, column, value);
            case ProtoType::sint32: return put_whole(step, column, unzigzag(static_cast<u32>(value)));
            case ProtoType::sint64: return put_whole(step, column, unzigzag(value));
            case ProtoType::boolean: return writer_.boolean(column, value != 0);
            default: return put_symbol(step, column, static_cast<i32>(value));
        }
    }

    // One of many values.
    void put_element(const Step &step, const ProtoMany::Element &each) {
        const u32 column = static_cast<u32>(step.column);
        const u32 low = static_cast<u32>(each.raw);
        switch (step.type) {
            case ProtoType::float_: return writer_.number(column, std::bit_cast<f32>(low));
            case ProtoType::double_: return writer_.number(column, std::bit_cast<f64>(each.raw));
            case ProtoType::text: return put_text(column, {each.at, each.raw});
            case ProtoType::fixed32: return put_whole(step, column, low);
            case ProtoType::sfixed32: return put_whole(step, column, static_cast<i32>(low));
            case ProtoType::fixed64: return put_large(step, column, each.raw);
            case ProtoType::sfixed64: return put_whole(step, column, static_cast<i64>(each.raw));
            default: put_varint(step, column, each.raw);
        }
    }

    void put_real(const Step &step, u32 column, f64 value) {
        if (step.silent && std::isnan(value)) [[unlikely]] without_number_.push_back(column);
        writer_.number(column, value);
    }
    void put_large(const Step &step, u32 column, u64 value) {
        put_integer(step, column, static_cast<f64>(value), value, false);
    }
    void put_integer(const Step &step, u32 column, f64 value, u64 magnitude, bool negative) {
        if (step.place == NO_FLOAT || !writer_.put_checked(column, step.place, value))
            writer_.integer(column, magnitude, negative);
    }
    void put_whole(const Step &step, u32 column, i64 value) {
        const u64 magnitude = value < 0 ? 0 - static_cast<u64>(value) : static_cast<u64>(value);
        put_integer(step, column, static_cast<f64>(value), magnitude, value < 0);
    }

    void put_text(u32 column, std::string_view text) {
        if (is_ascii(text) || is_utf8(text)) writer_.text(column, text);
        else writer_.wrong(column, "text that is not UTF-8");
    }

    // By its name where the column takes names; a number that has none is a number.
    void put_symbol(const Step &step, u32 column, i32 number) {
        const ProtoProgram::Symbol *found = step.symbol_count ? now_->program.symbol(step, number) : nullptr;
        if (!found) put_whole(step, column, number);
        else if (found->word == Kind::NO_WORD) writer_.text(column, found->text);
        else writer_.word(column, found->text, found->word);
    }

    // What the schema lets go unwritten.
    [[gnu::noinline]] void put_silent(const Part &part, u64 from) {
        for (; from < part.silent.size(); ++from) {
            const auto [column, at] = part.silent[from];
            if (writer_.has(column) || std::count(without_number_.begin(), without_number_.end(), column)) continue;
            const Step &step = part.steps[at];
            switch (step.type) {
                case ProtoType::float_:
                case ProtoType::double_: writer_.number(column, 0); break;
                case ProtoType::boolean: writer_.boolean(column, false); break;
                case ProtoType::enumeration: put_symbol(step, column, 0); break;
                default: put_whole(step, column, 0);
            }
        }
    }

    const ProtoSchema own_;
    const ProtoMessage &reader_;
    const bool framed_;
    const std::shared_ptr<SchemaSource> schemas_;
    std::map<std::string, std::unique_ptr<Writer>> writers_;   // by frame; of records without one ""
    const Writer *now_ = nullptr;
    std::string frame_;                  // now_'s
    SchemaName newest_name_;             // the same
    const ProtoField *many_ = nullptr;   // that holds its rows
    bool waits_ = false;
    ProtoBytes bytes_;
    ProtoMany lists_;                    // of the row
    const char *cursor_ = nullptr;
    const Step *failed_ = nullptr;       // of the row
    std::vector<u32> without_number_;    // columns of the row that were written, as NaN
};

inline std::unique_ptr<Decoder> protobuf(std::shared_ptr<const DecodePlan> plan, const Options &options) {
    return std::make_unique<ProtobufDecoder>(std::move(plan), options);
}

}  // namespace st::formats
