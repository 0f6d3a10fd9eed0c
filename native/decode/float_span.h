// Spans of numbers into float32 columns of a slot, a whole block of rows at a time.
#pragma once
#include <limits>
#include <type_traits>

#include "decode/column_span.h"

namespace st {

// Integers become double first, as cells that come one by one do.
template <class T, bool POSITIVE_ZERO, class Fits>
[[gnu::always_inline]] inline bool put_floats_by(const char *from, u8 *to, u64 stride, u32 count, Fits fits) {
    u32 bad = 0;
    for (u32 i = 0; i < count; ++i) {
        f32 value;
        if constexpr (std::is_same_v<T, f32>) value = load_little<T>(from + sizeof(T) * i);
        else value = static_cast<f32>(static_cast<f64>(load_little<T>(from + sizeof(T) * i)));
        bad |= !fits(value);
        if constexpr (POSITIVE_ZERO) value += 0.0f;   // a class has no negative zero
        std::memcpy(to + i * stride, &value, 4);
    }
    return !bad;
}

template <class T, bool POSITIVE_ZERO, class Fits>
bool put_floats_of(const ColumnSpan &span, u32 row, RowBlock &rows, Place place, Fits fits) {
    const char *from = span.data + sizeof(T) * u64{row};
    u8 *const to = rows.at(place);
    const u64 stride = rows.stride(place);
    return stride == 4   // alone in its block: by whole vectors
               ? put_floats_by<T, POSITIVE_ZERO>(from, to, 4, rows.count, fits)
               : put_floats_by<T, POSITIVE_ZERO>(from, to, stride, rows.count, fits);
}

inline bool are_booleans(const ColumnSpan &span, u32 row, u32 count) {
    u8 all = 0;
    for (u32 i = 0; i < count; ++i) all |= static_cast<u8>(span.data[row + i]);
    return all <= 1;
}

// False where a value does not fit, after rounding to float32, or the cells are no numbers.
template <bool POSITIVE_ZERO = false, class Fits>
bool put_floats(const ColumnSpan &span, u32 row, RowBlock &rows, Place place, Fits fits) {
    switch (span.type) {
        case CellType::f32: return put_floats_of<f32, POSITIVE_ZERO>(span, row, rows, place, fits);
        case CellType::f64: return put_floats_of<f64, POSITIVE_ZERO>(span, row, rows, place, fits);
        case CellType::i8: return put_floats_of<i8, POSITIVE_ZERO>(span, row, rows, place, fits);
        case CellType::i16: return put_floats_of<std::int16_t, POSITIVE_ZERO>(span, row, rows, place, fits);
        case CellType::i32: return put_floats_of<i32, POSITIVE_ZERO>(span, row, rows, place, fits);
        case CellType::i64: return put_floats_of<i64, POSITIVE_ZERO>(span, row, rows, place, fits);
        case CellType::u8: return put_floats_of<u8, POSITIVE_ZERO>(span, row, rows, place, fits);
        case CellType::u16: return put_floats_of<u16, POSITIVE_ZERO>(span, row, rows, place, fits);
        case CellType::u32: return put_floats_of<u32, POSITIVE_ZERO>(span, row, rows, place, fits);
        case CellType::u64: return put_floats_of<u64, POSITIVE_ZERO>(span, row, rows, place, fits);
        case CellType::boolean:
            return are_booleans(span, row, rows.count) &&
                   put_floats_of<u8, POSITIVE_ZERO>(span, row, rows, place, fits);
        default: return false;
    }
}

}  // namespace st
