// Packed records of a table (packed_column.h has the wire): the job's columns alone.
#pragma once
#include "decode/packed_values.h"
#include "decode/record_encoder.h"

namespace st::formats {

class PackedEncoder final : public RecordEncoder {
  public:
    void encode(const RowTable &table, const PickedRows &rows, std::string &out) override {
        u64 directory = 0;
        u32 count = 0;
        for (const RowTable::Column &column : table.columns)
            if (is_held(column)) ++count, directory += padded(PACKED_ENTRY_BYTES + column.plan.name.size(), 4);
        out.assign(padded(PACKED_HEADER_BYTES + directory, 64), 0);
        out.replace(0, 4, "STPK");
        put(out, 4, PACKED_VERSION);
        put(out, 6, static_cast<u16>(count));
        put(out, 8, static_cast<u32>(rows.count));
        put(out, 12, static_cast<u32>(directory));
        u64 entry = PACKED_HEADER_BYTES;
        for (u32 c = 0; c < table.columns.size(); ++c) {
            if (!is_held(table.columns[c])) continue;
            values_.take(table, c, rows);
            const std::string &name = table.columns[c].plan.name;
            put(out, entry, static_cast<u32>(out.size()));
            put(out, entry + 4, static_cast<u32>(values_.data.size()));
            append(out, values_.data);
            if (!values_.nulls.empty()) {
                put(out, entry + 8, static_cast<u32>(out.size()));
                append(out, values_.nulls);
            }
            out[entry + 12] = static_cast<char>(values_.type);
            out[entry + 13] = static_cast<char>(values_.of_list);
            put(out, entry + 16, values_.more);
            put(out, entry + 14, static_cast<u16>(name.size()));
            out.replace(entry + PACKED_ENTRY_BYTES, name.size(), name);
            entry += padded(PACKED_ENTRY_BYTES + name.size(), 4);
        }
    }

    bool keeps_others() const override { return false; }
    bool keeps_matrices() const override { return true; }

  private:
    static u64 padded(u64 size, u64 to) { return (size + to - 1) / to * to; }
    static bool is_held(const RowTable::Column &column) { return column.given && column.named; }

    static void append(std::string &out, const std::string &bytes) {
        out += bytes;
        out.resize(padded(out.size(), 64));
    }

    template <class T>
    static void put(std::string &out, u64 at, T value) {
        std::memcpy(out.data() + at, &value, sizeof value);
    }

    PackedValues values_;
};

inline std::unique_ptr<RecordEncoder> packed_encoder() { return std::make_unique<PackedEncoder>(); }

}  // namespace st::formats
