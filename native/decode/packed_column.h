// The packed wire, version 2, one column of it. Little-endian throughout; a record is
//   0 "STPK" | 4 u16 version | 6 u16 columns | 8 u32 rows | 12 u32 bytes of the directory | 16 directory | columns
// and a directory entry, padded to 4 bytes,
//   0 u32 data offset | 4 u32 data bytes | 8 u32 nulls offset (0: none) |
//   12 u8 type | 13 u8 0 | 14 u16 name bytes | 16 u32 of the type | 20 name
// Offsets count from the record's start and are multiples of 64. Nulls: one bit a row, lowest first, 1 = missing.
// text: u32 ends[rows], then UTF-8. words: u32 codes[rows], u32 words, u32 ends[words], then UTF-8. fixed: UTF-8, of
// each row as many bytes as the entry says. hash32, hash64: of text_hash.h, with the entry's seed. floats: f32, of each
// row as many as the entry says. bytes: as text, and no UTF-8.
#pragma once
#include "decode/column_span.h"

namespace st {

constexpr u64 PACKED_HEADER_BYTES = 16, PACKED_ENTRY_BYTES = 20;
constexpr u16 PACKED_VERSION = 2;

struct PackedColumn : ColumnSpan {
    u32 data_offset = 0, data_bytes = 0, nulls_offset = 0;   // as the directory has them
    const char *entry = nullptr;   // of the directory, while that is read

    // Finds the column's bytes in a record of `rows` rows; what is wrong with them, or nullptr. The offsets lie within
    // it.
    const char *bind(const char *record, u32 rows) {
        const char *const bytes = record + data_offset;
        const u64 size = data_bytes;
        if (u64{width} * rows > size) return "fewer bytes than rows need";
        move_to(record);
        if (type == CellType::text || type == CellType::bytes) {
            return set_texts(bytes, size, rows);
        } else if (type == CellType::words) {
            const u64 codes = u64{4} * rows;
            if (size < codes + 4) return "fewer bytes than rows need";
            const u32 word_count = load_little<u32>(bytes + codes);
            if (u64{4} * word_count > size - codes - 4) return "fewer bytes than its words need";
            return set_texts(bytes + codes + 4, size - codes - 4, word_count);
        }
        return nullptr;
    }

    // The same column of another record with the same directory, if it has nothing to check; true.
    bool move_to(const char *record) {
        data = letters = record + data_offset;
        nulls = nulls_offset ? record + nulls_offset : nullptr;
        return true;
    }
};

}  // namespace st
