// An Arrow IPC stream (https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format), message by message:
// its schema, dictionaries of texts, batches of rows. Each length and offset is checked; nothing of a record is copied.
#pragma once
#include <map>

#include "decode/arrow_column.h"

namespace st {

class ArrowStream {
  public:
    enum class Next : u8 { batch, end, broken };

    explicit ArrowStream(const DecodePlan &plan) : plan_(&plan) {}

    // Its schema. False: broken.
    bool open(const char *bytes, u64 size) {
        begin_ = at_ = bytes;
        end_ = bytes + size;
        problem_.clear();
        column_ = NO_COLUMN;
        words_.clear();
        Message message;
        if (next_message(message) != Next::batch) return problem_.empty() ? broken("no schema") : false;
        if (message.type != SCHEMA) return broken("no schema before its other messages");
        first_ = at_;
        return known_ == message.text || read_schema(message);
    }

    // Begins again behind the schema.
    void rewind() {
        at_ = first_;
        words_.clear();
    }

    // The next batch of rows, in `columns` (by the plan's columns). `moved`: they are as they were but for their place.
    Next next(std::vector<ArrowColumn> &columns, u32 &rows, bool &moved) {
        moved = false;
        for (;;) {
            Message message;
            const Next found = next_message(message);
            if (found != Next::batch) return found;
            if (message.type == SCHEMA) return broken("a second schema"), Next::broken;
            if (message.type == BATCH && moves_all_ && message.text == known_batch_) {
                for (const Move &move : moves_)
                    move.column->data = move.column->letters = message.body.data() + move.offset;
                rows = known_rows_;
                moved = true;
                return Next::batch;
            }
            const bool good =
                message.type == DICTIONARY ? read_dictionary(message) : read_batch(message, columns, rows);
            if (!good) return Next::broken;
            if (message.type == BATCH) return Next::batch;
        }
    }

    const std::vector<ArrowField> &fields() const { return fields_; }
    const std::string &problem() const { return problem_; }
    i32 column() const { return column_; }   // that the problem is of; NO_COLUMN: none

  private:
    static constexpr u8 SCHEMA = 1, DICTIONARY = 2, BATCH = 3;
    static constexpr u64 PREFIX_BYTES = 8;

    struct Message {
        FlatBuffer buffer;
        FlatBuffer::Table header;
        std::string_view text, body;
        u8 type = 0;
    };

    // A column whose cells lie in a batch's body as spans have them, and where.
    struct Move {
        ArrowColumn *column;
        u64 offset;
    };

    // Fields and buffers of a batch that are next.
    struct Cursor {
        FlatBuffer::Vector nodes, buffers;
        u32 node = 0, buffer = 0;
    };

    bool broken(const std::string &got) {
        problem_ = "expected an Arrow IPC stream, got " + got;
        return false;
    }

    // `batch`: a message of any type.
    Next next_message(Message &message) {
        const auto fail = [&](const std::string &got) { return broken(got), Next::broken; };
        const u64 left = static_cast<u64>(end_ - at_);
        const std::string where = " at byte " + std::to_string(at_ - begin_);
        if (left == 0) return Next::end;
        if (left < PREFIX_BYTES) return fail("a message of " + std::to_string(left) + " bytes" + where);
        if (load_little<u32>(at_) != 0xffffffff)
            return fail("a message that does not begin with four bytes 255" + where);
        const i32 size = load_little<i32>(at_ + 4);
        if (size == 0) {
            if (left > PREFIX_BYTES) return fail(std::to_string(left - PREFIX_BYTES) + " bytes behind its end");
            return Next::end;
        }
        if (size < 0 || static_cast<u64>(size) > left - PREFIX_BYTES)
            return fail("a message of " + std::to_string(size) + " bytes" + where + ", where " +
                        std::to_string(left - PREFIX_BYTES) + " are left");
        message.text = {at_ + PREFIX_BYTES, static_cast<u64>(size)};
        message.buffer = FlatBuffer(message.text.data(), message.text.size());
        const FlatBuffer::Table root = message.buffer.root();
        const auto version = message.buffer.scalar<std::int16_t>(root, 0, 0);
        message.type = message.buffer.scalar<u8>(root, 1, 0);
        message.header = message.buffer.table(root, 2);
        const i64 body = message.buffer.scalar<i64>(root, 3, 0);
        at_ = message.text.data() + message.text.size();
        if (message.buffer.is_bad() || !message.header) return fail("metadata that do not hold together" + where);
        if (version != 3 && version != 4) return fail("metadata of version " + std::to_string(version + 1) + where);
        if (message.type < SCHEMA || message.type > BATCH) return fail("a message that is no batch of rows" + where);
        if (body < 0 || body > end_ - at_)
            return fail("a body of " + std::to_string(body) + " bytes" + where + ", where " +
                        std::to_string(end_ - at_) + " are left");
        message.body = {at_, static_cast<u64>(body)};
        at_ += body;
        return Next::batch;
    }

    bool read_schema(Message &message) {
        known_.clear();
        fields_.clear();
        moves_all_ = false;
        if (message.buffer.scalar<std::int16_t>(message.header, 0, 0) != 0)
            return broken("numbers of the other byte order");
        const FlatBuffer::Vector fields = message.buffer.vector(message.header, 1, 4);
        for (u32 i = 0; i < fields.count && !message.buffer.is_bad(); ++i)
            fields_.push_back(ArrowField::read(message.buffer, message.buffer.table_of(fields, i)));
        if (message.buffer.is_bad()) return broken("metadata that do not hold together at byte 0");
        std::map<i32, ArrowField *> last;   // of one given twice
        for (ArrowField &field : fields_) {
            const i32 column = plan_->names.find(field.name);
            if (column < 0 || !plan_->wanted[static_cast<u32>(column)]) continue;
            if (ArrowField *&before = last[column]) before->column = NO_COLUMN;
            (last[column] = &field)->column = column;
        }
        known_ = message.text;
        return true;
    }

    // Where a batch's fields and buffers are told, which are neither compressed nor of another number of them.
    bool open_batch(Message &message, FlatBuffer::Table batch, Cursor &cursor) {
        cursor.nodes = message.buffer.vector(batch, 1, 16);
        cursor.buffers = message.buffer.vector(batch, 2, 16);
        if (message.buffer.table(batch, 3)) return broken("a compressed body (LZ4 or ZSTD); write it without");
        return message.buffer.is_bad() ? broken("a batch whose metadata do not hold together") : true;
    }

    bool read_dictionary(Message &message) {
        const i64 id = message.buffer.scalar<i64>(message.header, 0, 0);
        const FlatBuffer::Table batch = message.buffer.table(message.header, 1);
        if (message.buffer.scalar<u8>(message.header, 2, 0))
            return broken("a dictionary in parts; write it as a whole");
        Cursor cursor;
        if (!open_batch(message, batch, cursor)) return false;
        for (const ArrowField &field : fields_) {
            const ArrowField &coded = field.cells();
            if (!coded.is_coded || coded.dictionary != id || field.column == NO_COLUMN) continue;
            ArrowBuffers found;
            ArrowField values = coded;
            values.is_coded = false;
            const char *problem = find(message, values, cursor, found);
            if (!problem) problem = ArrowColumn::read_words(values, found, words_[id]);
            if (problem) return column_ = field.column, broken_column(problem);
            return true;
        }
        return true;   // nobody's
    }

    bool read_batch(Message &message, std::vector<ArrowColumn> &columns, u32 &rows) {
        const i64 count = message.buffer.scalar<i64>(message.header, 0, 0);
        Cursor cursor;
        if (!open_batch(message, message.header, cursor)) return false;
        if (count < 0 || count > 0x7fffffff || static_cast<u64>(count) > 8 * message.body.size())
            return broken("a batch of " + std::to_string(count) + " rows in " + std::to_string(message.body.size()) +
                          " bytes");
        rows = static_cast<u32>(count);
        moves_all_ = false;
        moves_.clear();
        for (ArrowColumn &column : columns) column.data = column.nulls = nullptr;
        for (const ArrowField &field : fields_) {
            column_ = field.column;
            const char *const problem = field.column == NO_COLUMN
                                            ? pass(message, field, cursor)
                                            : bind(message, field, cursor, columns[u32(field.column)], rows);
            if (problem) return broken_column(problem);
        }
        column_ = NO_COLUMN;
        remember(message, columns, rows);
        return true;
    }

    // Most batches have the metadata of the one before, so that only addresses change: where no cell had to be made
    // or looked at.
    void remember(const Message &message, std::vector<ArrowColumn> &columns, u32 rows) {
        for (ArrowColumn &column : columns) {
            if (!column.data) continue;
            if (!column.is_in_place()) return;
            moves_.push_back({&column, static_cast<u64>(column.data - message.body.data())});
        }
        known_batch_ = message.text;
        known_rows_ = rows;
        moves_all_ = rows > 0;
    }

    bool broken_column(const char *problem) {
        problem_ = std::string("expected a column of an Arrow IPC stream, got ") + problem;
        return false;
    }

    const char *bind(Message &message, const ArrowField &field, Cursor &cursor, ArrowColumn &column, u32 rows) {
        ArrowBuffers found;
        if (const char *problem = find(message, field, cursor, found)) return problem;
        if (!field.is_list()) return bind_cells(field, found, column, column.column, rows);
        const ArrowField &of = field.children[0];
        ArrowBuffers inside;
        if (const char *problem = find(message, of, cursor, inside)) return problem;
        if (field.type == ArrowType::fixed_list && of.type == ArrowType::floating && of.bits > 16 && !of.is_coded)
            return column.bind_lists(of, field.list_size, found, inside, rows);
        if (inside.rows < 0 || inside.rows > 0x7fffffff) return "lists of more cells than there can be";
        if (!column.within) column.within = std::make_unique<ArrowColumn>();
        const char *problem = bind_cells(of, inside, *column.within, column.column, static_cast<u32>(inside.rows));
        return problem ? problem : column.bind_ragged(field, found, rows);
    }

    const char *bind_cells(const ArrowField &field, const ArrowBuffers &found, ArrowColumn &into, u32 column,
                           u32 rows) {
        if (!field.is_coded && !field.children.empty()) return "a type that is no column's";
        const auto words = words_.find(field.dictionary);
        const char *problem = into.bind(field, found, rows, words == words_.end() ? nullptr : &words->second);
        if (!problem) into.check_words(plan_->columns[column]);
        return problem;
    }

    // A field that is in nobody's way, and all below it.
    const char *pass(Message &message, const ArrowField &field, Cursor &cursor) {
        ArrowBuffers found;
        if (const char *problem = find(message, field, cursor, found)) return problem;
        if (field.is_coded) return nullptr;
        for (const ArrowField &child : field.children)
            if (const char *problem = pass(message, child, cursor)) return problem;
        return nullptr;
    }

    // The buffers of a field itself.
    const char *find(Message &message, const ArrowField &field, Cursor &cursor, ArrowBuffers &found) {
        const int count = field.buffers();
        if (count < 0) return "a batch with a field of a type that this build does not know";
        if (cursor.node >= cursor.nodes.count) return "fewer fields than its schema has";
        found.rows = message.buffer.number_of(cursor.nodes, u64{2} * cursor.node);
        found.nulls = message.buffer.number_of(cursor.nodes, u64{2} * cursor.node + 1);
        ++cursor.node;
        std::string_view *const places[] = {&found.there, &found.first, &found.second};
        for (int i = 0; i < count; ++i) {
            if (cursor.buffer >= cursor.buffers.count) return "fewer buffers than its schema has";
            const i64 offset = message.buffer.number_of(cursor.buffers, u64{2} * cursor.buffer),
                      length = message.buffer.number_of(cursor.buffers, u64{2} * cursor.buffer + 1);
            ++cursor.buffer;
            const i64 size = static_cast<i64>(message.body.size());
            if (offset < 0 || length < 0 || offset > size || length > size - offset)
                return "a buffer outside of its batch's body";
            *places[i] = message.body.substr(static_cast<u64>(offset), static_cast<u64>(length));
        }
        return nullptr;
    }

    const DecodePlan *plan_;
    const char *begin_ = nullptr, *at_ = nullptr, *end_ = nullptr, *first_ = nullptr;
    std::string known_;   // the schema that fields_ are of
    std::vector<ArrowField> fields_;
    std::map<i64, ArrowWords> words_;
    std::string known_batch_;   // metadata of the batch that the columns are of, where moves_all_
    std::vector<Move> moves_;
    u32 known_rows_ = 0;
    bool moves_all_ = false;
    std::string problem_;
    i32 column_ = NO_COLUMN;
};

}  // namespace st
