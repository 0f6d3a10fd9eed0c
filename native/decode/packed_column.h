// The packed wire, version 2, one column of it. Little-endian throughout; a record is
//   0 "STPK" | 4 u16 version | 6 u16 columns | 8 u32 rows | 12 u32 bytes of the directory | 16 directory | columns
// and a directory entry, padded to 4 bytes,
//   0 u32 data offset | 4 u32 data bytes | 8 u32 nulls offset (0: none) |
//   12 u8 type | 13 u8 of a list's cells | 14 u16 name bytes | 16 u32 of the type, of a list's cells | 20 name
// Offsets count from the record's start and are multiples of 64. Nulls: one bit a row, lowest first, 1 = missing.
// text: u32 ends[rows], then UTF-8. words: u32 codes[rows], u32 words, u32 ends[words], then UTF-8. fixed: UTF-8, of
// each row as many bytes as the entry says. hash32, hash64: of text_hash.h, with the entry's seed. floats: f32, of each
// row as many as the entry says. bytes: as text, and no UTF-8. list: u32 ends[rows], counted in cells, then as a column
// of so many cells has them, of any type but list and floats; none is missing, and each takes a byte at least.
#pragma once
#include "decode/column_span.h"

namespace st {

constexpr u64 PACKED_HEADER_BYTES = 16, PACKED_ENTRY_BYTES = 20;
constexpr u16 PACKED_VERSION = 2;

struct PackedColumn : ColumnSpan {
    u32 data_offset = 0, data_bytes = 0, nulls_offset = 0;   // as the directory has them
    const char *entry = nullptr;   // of the directory, while that is read
    ColumnSpan cells;              // of a list

    // Finds the column's bytes in a record of `rows` rows; what is wrong with them, or nullptr. The offsets lie within
    // it.
    const char *bind(const char *record, u32 rows) {
        const char *const bytes = record + data_offset;
        move_to(record);
        if (type != CellType::list) return bind_cells(*this, bytes, data_bytes, rows);
        if (u64{4} * rows > data_bytes) return FEW_BYTES;
        u32 count = 0;
        for (u32 i = 0; i < rows; ++i) {
            const u32 end = load_little<u32>(bytes + u64{4} * i);
            if (end < count) return "list ends out of order";
            count = end;
        }
        ends = bytes;
        each = &cells;
        const u64 size = data_bytes - u64{4} * rows;
        if (count > size) return "lists longer than its bytes";   // of cells without a byte there would be no end
        cells.data = cells.letters = bytes + u64{4} * rows;
        return bind_cells(cells, cells.data, size, count);
    }

    // The same column of another record with the same directory, if it has nothing to check; true.
    bool move_to(const char *record) {
        data = letters = record + data_offset;
        nulls = nulls_offset ? record + nulls_offset : nullptr;
        return true;
    }

  private:
    static constexpr const char *FEW_BYTES = "fewer bytes than rows need";

    // Whether `count` cells of the span's type lie in these bytes.
    static const char *bind_cells(ColumnSpan &span, const char *bytes, u64 size, u32 count) {
        if (u64{span.width} * count > size) return FEW_BYTES;
        if (span.type == CellType::text || span.type == CellType::bytes) {
            return span.set_texts(bytes, size, count);
        } else if (span.type == CellType::words) {
            const u64 codes = u64{4} * count;
            if (size < codes + 4) return FEW_BYTES;
            const u32 word_count = load_little<u32>(bytes + codes);
            if (u64{4} * word_count > size - codes - 4) return "fewer bytes than its words need";
            return span.set_texts(bytes + codes + 4, size - codes - 4, word_count);
        }
        return nullptr;
    }
};

}  // namespace st
