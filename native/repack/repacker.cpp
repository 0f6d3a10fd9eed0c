#include "repack/repacker.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "decode/schema_frame.h"

namespace st {
namespace {

constexpr u64 TAKEN = 2000;               // views at once
constexpr u64 MOST_CELLS = u64{1} << 22;  // of a transaction: 64 MiB
constexpr u64 TOLD = 5;                   // of the rows that cannot be used
constexpr u64 HEADER_BYTES = 32;          // of a message beside name and value
constexpr int ROOM_MS = 50;               // of waiting for deliveries while the queue is full
constexpr u32 NO_VALUE = ~u32{0};         // of a header

template <class T>
void append(std::string &to, T value) {
    to.append(reinterpret_cast<const char *>(&value), sizeof value);
}

// Calls take(name, value, has_value) for each of headers as Group has them.
template <class Take>
void each_header(const std::string &headers, Take take) {
    for (const char *p = headers.data(), *const end = p + headers.size(); p < end;) {
        const u32 name_size = load_little<u32>(p), value_size = load_little<u32>(p + 4);
        const std::string_view name(p + 8, name_size);
        const u64 size = value_size == NO_VALUE ? 0 : value_size;
        p += 8 + name_size;
        take(name, std::string_view(p, size), value_size != NO_VALUE);
        p += size;
    }
}

// As Python's str() has it.
std::string float_text(f64 value) {
    char text[40];
    const f64 size = std::abs(value);
    const bool is_plain = size == 0 || (size >= 1e-4 && size < 1e16);
    const auto form = is_plain ? std::chars_format::fixed : std::chars_format::scientific;
    std::string made(text, std::to_chars(text, text + sizeof text, value, form).ptr);
    return is_plain && made.find('.') == std::string::npos ? made + ".0" : made;
}

}  // namespace

Repacker::Repacker(const RecordFormat &from, std::shared_ptr<const DecodePlan> plan, std::shared_ptr<KeptRows> kept,
                   const RecordFormat &packed, Repacking wanted)
    : batch_(from, std::move(plan)), kept_(std::move(kept)), encoder_(make_encoder(packed)),
      wanted_(std::move(wanted)), views_(TAKEN) {
    next_slot();
}

void Repacker::start(Source &source, const Consumer::Offsets &offsets) {
    std::vector<StartPosition> positions;
    for (const auto &[partition, offset] : offsets) positions.push_back({offset, 0, partition});
    source.start(positions);
}

u64 Repacker::take(Source &source, i64 wait_ns) {
    next_ = 0;
    taken_ = source.take(views_.data(), views_.size(), wait_ns);
    return taken_;
}

Repacker::Until Repacker::decode(Source &source, u64 most_records, u64 most_bytes) {
    const u64 columns = kept_->table().columns.size();
    while (next_ < taken_) {
        const RecordView &record = views_[next_];
        if (!record.hole) {
            if (waiting_ == most_records || waiting_bytes_ >= most_bytes || origins_.size() * columns >= MOST_CELLS)
                return Until::due;
            if (record.value && record.size && !decode(record)) return Until::waits;
            ++waiting_;
            waiting_bytes_ += record.size;
            auto at = std::ranges::find(positions_, record.partition, &std::pair<i32, i64>::first);
            if (at == positions_.end()) at = positions_.insert(at, {record.partition, 0});
            at->second = record.offset + record.span;
        }
        ++next_;
    }
    source.release();
    return Until::taken;
}

// The rows of the slot are the table's next ones.
void Repacker::next_slot() {
    kept_->place(first_, batch_.plan().layout.row_capacity);
    batch_.open();
}

// False where it waits for its schema.
bool Repacker::decode(const RecordView &record) {
    batch_.tally().clear();
    batch_.begin(record);
    if (batch_.record().waits()) return false;
    take_headers(record);
    for (bool done = false; !done;) {
        if (batch_.full()) {
            first_ += batch_.rows();
            next_slot();
        }
        const u64 begin = first_ + batch_.rows();
        done = batch_.next();
        add_rows(record, begin, first_ + batch_.rows());
    }
    tell(record);
    return true;
}

void Repacker::take_headers(const RecordView &record) {
    headers_.clear();
    if (!record.headers) return;
    for (const DeadLetterHeader &header : record.headers(record.handle)) {
        const std::string_view name(header.name);
        if (name == SchemaFrame::HEADER) continue;   // of other bytes
        append(headers_, static_cast<u32>(name.size()));
        append(headers_, header.value ? static_cast<u32>(header.size) : NO_VALUE);
        headers_ += name;
        if (header.value) headers_.append(reinterpret_cast<const char *>(header.value), header.size);
    }
}

// Rows of one key stay in their order; of those without one, those with the same headers.
Repacker::Group &Repacker::group_of(bool is_keyed, std::string_view key, i32 partition) {
    id_.assign(1, is_keyed);
    if (is_keyed) {
        id_ += key;
    } else {
        append(id_, partition);
        id_ += headers_;
    }
    const auto found = newest_.find(std::string_view(id_));
    if (found != newest_.end() && groups_[found->second].headers == headers_) return groups_[found->second];
    newest_[id_] = static_cast<u32>(groups_.size());
    return groups_.emplace_back(Group{std::string(key), is_keyed, partition, headers_, {}});
}

void Repacker::add_rows(const RecordView &record, u64 begin, u64 end) {
    if (begin == end) return;
    origins_.resize(end, {record.partition, record.offset});
    if (wanted_.key_column == NO_COLUMN) {
        const std::string_view key(reinterpret_cast<const char *>(record.key), record.key ? record.key_size : 0);
        Group &group = group_of(record.key != nullptr, key, record.partition);
        for (u64 row = begin; row < end; ++row) group.rows.push_back(static_cast<u32>(row));
        return;
    }
    for (u64 row = begin; row < end; ++row) {
        const bool is_keyed = key_of(row, key_);
        group_of(is_keyed, is_keyed ? std::string_view(key_) : "", record.partition)
            .rows.push_back(static_cast<u32>(row));
    }
}

// The text of the key column's cell; false where it is missing.
bool Repacker::key_of(u64 row, std::string &key) const {
    struct Key {
        std::string &to;
        bool found = true;
        void missing() { found = false; }
        void boolean(bool value) { to = value ? "True" : "False"; }
        void integer(u64 magnitude, bool negative) {
            char buffer[24];
            to = integer_text(magnitude, negative, buffer);
        }
        void long_integer(f64, std::string_view digits) { to = digits; }
        void number(f64 value) { to = float_text(value); }
        void text(std::string_view text) { to = text; }
        void bytes(std::string_view raw) { to = raw; }
    } found{key};
    const RowTable &table = kept_->table();
    const Cell &cell = table.cells[static_cast<u32>(wanted_.key_column) * table.rows + row];
    table.read_cell(cell, found);
    return found.found && cell.kind != CellKind::list;
}

void Repacker::tell(const RecordView &record) {
    const RowTally &tally = batch_.tally();
    told_.filtered += tally.filtered;
    if (!tally.dead) return;
    const std::string at =
        wanted_.from + "[" + std::to_string(record.partition) + "]@" + std::to_string(record.offset) + " row ";
    for (const DeadRows &dead : tally.dead_rows)
        for (i64 row = dead.row_from; row < dead.row_to; ++row)
            leave_out(told_.first.size() < TOLD ? at + std::to_string(row) + " at " + dead.path + ": " + dead.reason
                                                : std::string());
}

void Repacker::leave_out(const std::string &where) {
    ++told_.left_out;
    if (told_.first.size() < TOLD) told_.first.push_back(where);
}

// A column that no row of the group has a cell of is left out of its records, unless none has any.
void Repacker::mark_given(const Group &group) {
    RowTable &table = kept_->table();
    bool any = false;
    for (u32 c = 0; c < table.columns.size(); ++c) {
        const auto is_there = [&](u32 row) { return table.cell(c, row).kind != CellKind::missing; };
        any |= table.columns[c].given = std::ranges::any_of(group.rows, is_there);
    }
    if (any) return;
    for (RowTable::Column &column : table.columns) column.given = column.plan.from.empty();
}

int Repacker::write(Producer &producer, i32 partitions) {
    for (const Group &group : groups_) {
        mark_given(group);
        for (u64 from = 0; from < group.rows.size(); from += wanted_.pack) {
            const u64 count = std::min<u64>(wanted_.pack, group.rows.size() - from);
            if (const int code = write(producer, partitions, group, group.rows.data() + from, static_cast<u32>(count)))
                return code;
        }
    }
    told_.messages += waiting_;
    return 0;
}

// One record, or two halves of it where it would be too large, or where no column holds their cells together.
int Repacker::write(Producer &producer, i32 partitions, const Group &group, const u32 *rows, u32 count) {
    std::string mistake;
    try {
        encoder_->encode(kept_->table(), {0, count, rows}, record_);
        u64 around = group.key.size();
        each_header(group.headers, [&](std::string_view name, std::string_view value, bool) {
            around += name.size() + value.size() + HEADER_BYTES;
        });
        const u64 size = record_.size() + around;
        if (size <= wanted_.most_bytes) {
            const int code = produce(producer, partitions, group);
            if (!code) ++told_.records, told_.rows += count;
            return code;
        }
        if (count == 1) mistake = "expected a row of at most " + std::to_string(wanted_.most_bytes) +
                                  " bytes with its key and headers, got " + std::to_string(size);
    } catch (const CellMistake &found) {
        const std::string &name = found.field.empty() ? kept_->table().columns[found.column].plan.name : found.field;
        mistake = "$." + name + ": expected " + found.expected + ", got " + found.got;
    }
    if (count == 1) {
        const Origin &origin = origins_[rows[0]];
        leave_out(wanted_.from + "[" + std::to_string(origin.partition) + "]@" + std::to_string(origin.offset) + ": " +
                  mistake);
        return 0;
    }
    const u32 half = count / 2;
    if (const int code = write(producer, partitions, group, rows, half)) return code;
    return write(producer, partitions, group, rows + half, count - half);
}

int Repacker::produce(Producer &producer, i32 partitions, const Group &group) {
    const Library &kafka = Library::get();
    rd_kafka_headers_t *headers = group.headers.empty() ? nullptr : kafka.headers_new(4);
    each_header(group.headers, [&](std::string_view name, std::string_view value, bool has_value) {
        kafka.header_add(headers, name.data(), static_cast<ssize_t>(name.size()), has_value ? value.data() : nullptr,
                         static_cast<ssize_t>(value.size()));
    });
    const i32 partition = group.is_keyed ? rd::any_partition : group.partition % partitions;
    const Bytes key{group.is_keyed ? group.key.data() : nullptr, group.key.size()};
    int code = 0;
    try {
        while ((code = producer.produce(wanted_.to, partition, key, {record_.data(), record_.size()}, headers)) ==
               rd::queue_full)
            producer.poll(ROOM_MS);
    } catch (const KafkaFailure &failure) {   // of the topic, before the record is looked at
        code = failure.code;
    }
    if (code && headers) kafka.headers_destroy(headers);
    return code;
}

void Repacker::done() {
    waiting_ = waiting_bytes_ = 0;
    positions_.clear();
    groups_.clear();
    newest_.clear();
    origins_.clear();
    kept_->clear();
    first_ = 0;
    next_slot();
}

}  // namespace st
