// An Arrow IPC stream of a table: a schema and one batch, the job's columns alone, nothing compressed.
#pragma once
#include <bit>

#include "decode/arrow_field.h"
#include "decode/flat_writer.h"
#include "decode/packed_values.h"
#include "decode/record_encoder.h"

namespace st::formats {

class ArrowEncoder final : public RecordEncoder {
  public:
    void encode(const RowTable &table, const PickedRows &rows, std::string &out) override {
        made_.clear();
        body_.clear();
        for (u32 c = 0; c < table.columns.size(); ++c) {
            if (!table.columns[c].given || !table.columns[c].named) continue;
            values_.take(table, c, rows, false);
            made_.push_back({table.columns[c].plan.name, values_.type, values_.more});
            add_column(made_.back(), rows.count);
        }
        out.clear();
        append(out, [&](FlatWriter &to, u64 header) { write_schema(to, header); }, SCHEMA, 0);
        append(out, [&](FlatWriter &to, u64 header) { write_batch(to, header, rows.count); }, BATCH, body_.size());
        out += body_;
        out.append("\xff\xff\xff\xff\0\0\0\0", 8);
    }

    bool keeps_others() const override { return false; }
    bool keeps_matrices() const override { return true; }

  private:
    static constexpr u8 SCHEMA = 1, BATCH = 3;
    static constexpr i64 VERSION_5 = 4;

    struct Buffer {
        u64 at, size;
    };
    struct Made {
        std::string name;
        CellType type;
        u32 more;
        u64 nulls = 0, cells = 0;   // cells: of its lists
        std::vector<Buffer> buffers = {};
    };

    template <class Write>
    static void append(std::string &out, Write write, u8 type, u64 body_bytes) {
        std::string meta;
        FlatWriter to(meta);
        const auto places =
            to.table(0, {{0, 2, VERSION_5}, {1, 1, type}, {2, 4}, {3, 8, static_cast<i64>(body_bytes)}});
        write(to, places[2]);
        meta.resize((meta.size() + 7) / 8 * 8);
        const u32 size = static_cast<u32>(meta.size());
        out.append("\xff\xff\xff\xff", 4).append(reinterpret_cast<const char *>(&size), 4) += meta;
    }

    void write_schema(FlatWriter &to, u64 header) const {
        const u64 fields = to.vector(to.table(header, {{1, 4}})[1], made_.size(), 4);
        for (u64 i = 0; i < made_.size(); ++i) write_field(to, fields + 4 * i, made_[i], made_[i].type);
    }

    static void write_field(FlatWriter &to, u64 from, const Made &made, CellType as) {
        const bool is_item = as != made.type;
        const auto places =
            to.table(from, {{0, 4}, {1, 1, 1}, {2, 1, static_cast<i64>(type_of(as))}, {3, 4}, {5, 4}});
        to.text(places[0], is_item ? "item" : made.name);
        to.table(places[3], settings_of(as, made.more));
        const bool has_items = has_cells(as);
        const u64 children = to.vector(places[5], has_items, 4);
        if (has_items) write_field(to, children, made, as == CellType::floats ? CellType::f32 : CellType::text);
    }

    static bool has_cells(CellType type) { return type == CellType::floats || type == CellType::list; }

    static ArrowType type_of(CellType type) {
        switch (type) {
            case CellType::list: return ArrowType::list;
            case CellType::f32: case CellType::f64: return ArrowType::floating;
            case CellType::boolean: return ArrowType::boolean;
            case CellType::floats: return ArrowType::fixed_list;
            case CellType::bytes: return ArrowType::binary;
            case CellType::text: case CellType::words: case CellType::fixed: return ArrowType::utf8;
            default: return ArrowType::integer;
        }
    }

    static std::vector<FlatWriter::Field> settings_of(CellType type, u32 more) {
        switch (type_of(type)) {
            case ArrowType::floating: return {{0, 2, type == CellType::f32 ? 1 : 2}};
            case ArrowType::fixed_list: return {{0, 4, more}};
            case ArrowType::integer:
                return {{0, 4, static_cast<i64>(8 * bytes_of(type))}, {1, 1, type <= CellType::i64 ? 1 : 0}};
            default: return {};
        }
    }

    void write_batch(FlatWriter &to, u64 header, u64 rows) const {
        const auto places = to.table(header, {{0, 8, static_cast<i64>(rows)}, {1, 4}, {2, 4}});
        u64 nodes = 0, buffers = 0;
        for (const Made &made : made_) nodes += 1 + has_cells(made.type), buffers += made.buffers.size();
        u64 at = to.vector(places[1], nodes, 16);
        for (const Made &made : made_) {
            at = put_pair(to, at, rows, made.nulls);
            if (has_cells(made.type)) at = put_pair(to, at, made.cells, 0);
        }
        at = to.vector(places[2], buffers, 16);
        for (const Made &made : made_)
            for (const Buffer &buffer : made.buffers) at = put_pair(to, at, buffer.at, buffer.size);
    }

    static u64 put_pair(FlatWriter &to, u64 at, u64 first, u64 second) {
        to.put(at, first);
        to.put(at + 8, second);
        return at + 16;
    }

    // The column at hand, as Arrow has its cells.
    void add_column(Made &made, u64 rows) {
        std::string there = values_.nulls;
        for (u64 i = 0; i < there.size(); ++i) {
            made.nulls += static_cast<u64>(std::popcount(static_cast<u8>(there[i])));
            there[i] = static_cast<char>(~there[i]);
        }
        add_buffer(made, there);
        switch (made.type) {
            case CellType::floats:
                made.cells = rows * made.more;
                add_buffer(made, {});
                return add_buffer(made, values_.data);
            case CellType::list: return add_lists(made, rows);
            case CellType::boolean: return add_booleans(made, rows);
            case CellType::text: case CellType::bytes: case CellType::words: case CellType::fixed:
                return add_texts(made, rows);
            default: add_buffer(made, values_.data);
        }
    }

    void add_buffer(Made &made, const std::string &bytes) {
        made.buffers.push_back({body_.size(), bytes.size()});
        body_ += bytes;
        body_.resize((body_.size() + 63) / 64 * 64);
    }

    void add_booleans(Made &made, u64 rows) {
        std::string bits((rows + 7) / 8, '\0');
        for (u64 i = 0; i < rows; ++i)
            bits[i >> 3] = static_cast<char>(bits[i >> 3] | (values_.data[i] & 1) << (i & 7));
        add_buffer(made, bits);
    }

    // Of texts.
    void add_lists(Made &made, u64 rows) {
        const std::string_view data = values_.data;
        made.cells = rows ? load_little<u32>(data.data() + 4 * (rows - 1)) : 0;
        add_offsets(made, data.substr(0, 4 * rows));
        add_buffer(made, {});
        add_offsets(made, data.substr(4 * rows, 4 * made.cells));
        add_buffer(made, std::string(data.substr(4 * (rows + made.cells))));
    }

    void add_offsets(Made &made, std::string_view ends) { add_buffer(made, std::string(4, '\0').append(ends)); }

    void add_texts(Made &made, u64 rows) {
        std::string offsets(4, '\0'), letters;
        for (u64 i = 0; i < rows; ++i) {
            letters += text_of(i, rows);
            const u32 end = static_cast<u32>(letters.size());
            offsets.append(reinterpret_cast<const char *>(&end), sizeof end);
        }
        add_buffer(made, offsets);
        add_buffer(made, letters);
    }

    std::string_view text_of(u64 row, u64 rows) const {
        const std::string_view data = values_.data;
        if (values_.type == CellType::fixed) {
            const bool gone = !values_.nulls.empty() && values_.nulls[row >> 3] >> (row & 7) & 1;
            return gone ? std::string_view() : data.substr(u64{values_.more} * row, values_.more);
        }
        u64 ends = 0, count = rows, index = row;
        if (values_.type == CellType::words) {
            index = load_little<u32>(data.data() + 4 * row);
            count = load_little<u32>(data.data() + 4 * rows);
            ends = 4 * rows + 4;
        }
        const u32 from = index ? load_little<u32>(data.data() + ends + 4 * (index - 1)) : 0;
        const u32 to = load_little<u32>(data.data() + ends + 4 * index);
        return data.substr(ends + 4 * count + from, to - from);
    }

    PackedValues values_;
    std::vector<Made> made_;
    std::string body_;
};

inline std::unique_ptr<RecordEncoder> arrow_encoder() { return std::make_unique<ArrowEncoder>(); }

}  // namespace st::formats
