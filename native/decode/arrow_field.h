// A field of an Arrow schema, as https://github.com/apache/arrow/blob/main/format/Schema.fbs has it: what its cells are
// here, and which buffers it has in a batch.
#pragma once
#include <string>
#include <vector>

#include "decode/flat_buffer.h"
#include "decode/kind.h"

namespace st {

enum class ArrowType : u8 {
    none, null, integer, floating, binary, utf8, boolean, decimal, date, time, timestamp, interval, list, structure,
    unions, fixed_binary, fixed_list, map, duration, large_binary, large_utf8, large_list
};

struct ArrowField {
    static constexpr u32 DEEPEST = 64;
    static constexpr TimeUnit NO_UNIT = {0, 1};

    std::string name;
    ArrowType type = ArrowType::none;
    u32 bits = 0;                  // of a number
    bool is_signed = false;
    TimeUnit unit = NO_UNIT;       // of a time
    u32 list_size = 0;
    bool is_coded = false;         // by a dictionary, which holds what `type` says
    i64 dictionary = 0;
    u32 code_bits = 32;
    bool code_signed = true;
    std::vector<ArrowField> children;
    i32 column = -1;               // of the plan

    // Nothing is thrown for what the bytes hold: `buffer` is bad then.
    static ArrowField read(FlatBuffer &buffer, FlatBuffer::Table field, u32 depth = 0) {
        ArrowField made;
        made.name = buffer.text(field, 0);
        const u8 type = buffer.scalar<u8>(field, 2, 0);
        made.type = type <= static_cast<u8>(ArrowType::large_list) ? static_cast<ArrowType>(type) : ArrowType::none;
        made.read_type(buffer, buffer.table(field, 3));
        if (const FlatBuffer::Table coded = buffer.table(field, 4)) {
            made.is_coded = true;
            made.dictionary = buffer.scalar<i64>(coded, 0, 0);
            if (const FlatBuffer::Table index = buffer.table(coded, 1)) {
                made.code_bits = static_cast<u32>(buffer.scalar<i32>(index, 0, 0));
                made.code_signed = buffer.scalar<u8>(index, 1, 0);
            }
        }
        const FlatBuffer::Vector children = buffer.vector(field, 5, 4);
        for (u32 i = 0; i < children.count && depth < DEEPEST && !buffer.is_bad(); ++i)
            made.children.push_back(read(buffer, buffer.table_of(children, i), depth + 1));
        if (children.count != made.children.size()) made.type = ArrowType::none;
        return made;
    }

    bool is_list() const {
        const bool is_one = type == ArrowType::list || type == ArrowType::large_list || type == ArrowType::fixed_list;
        return is_one && !is_coded && children.size() == 1;
    }

    // What its cells are, or those of its lists.
    const ArrowField &cells() const { return is_list() ? children[0] : *this; }

    // Behind a bitmap of what is there, which `null` has not; of what may stand in a batch without being read.
    // -1: nobody knows.
    int buffers() const {
        if (is_coded) return 2;
        switch (type) {
            case ArrowType::null: return 0;
            case ArrowType::binary: case ArrowType::utf8:
            case ArrowType::large_binary: case ArrowType::large_utf8: return 3;
            case ArrowType::structure: case ArrowType::fixed_list: return 1;
            case ArrowType::none: case ArrowType::unions: return -1;
            default: return 2;
        }
    }

    // The type of numbers of so many bits; 0 where there is none.
    static CellType whole(u32 bits, bool is_signed) {
        switch (bits) {
            case 8: return is_signed ? CellType::i8 : CellType::u8;
            case 16: return is_signed ? CellType::i16 : CellType::u16;
            case 32: return is_signed ? CellType::i32 : CellType::u32;
            case 64: return is_signed ? CellType::i64 : CellType::u64;
            default: return CellType{};
        }
    }

  private:
    void read_type(FlatBuffer &buffer, FlatBuffer::Table of) {
        switch (type) {
            case ArrowType::integer:
                bits = static_cast<u32>(buffer.scalar<i32>(of, 0, 0));
                is_signed = buffer.scalar<u8>(of, 1, 0);
                return;
            case ArrowType::floating: {
                const i32 precision = buffer.scalar<std::int16_t>(of, 0, 0);
                bits = precision < 0 || precision > 2 ? 0 : 16u << precision;
                return;
            }
            case ArrowType::date: {
                const bool in_days = buffer.scalar<std::int16_t>(of, 0, 1) == 0;
                bits = in_days ? 32 : 64;
                unit = in_days ? TimeUnit{86'400'000, 1} : TimeUnit{1, 1};
                return;
            }
            case ArrowType::timestamp: {
                constexpr TimeUnit UNITS[] = {{1000, 1}, {1, 1}, {1, 1000}, {1, 1'000'000}};
                const i32 number = buffer.scalar<std::int16_t>(of, 0, 0);
                bits = 64;
                if (number < 0 || number > 3) type = ArrowType::none;
                else unit = UNITS[number];
                return;
            }
            case ArrowType::fixed_list: {
                const i32 size = buffer.scalar<i32>(of, 0, 0);
                if (size < 0) type = ArrowType::none;
                else list_size = static_cast<u32>(size);
                return;
            }
            default: return;
        }
    }
};

}  // namespace st
