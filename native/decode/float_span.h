// Spans of numbers into columns of floats of a slot, a whole block of rows at a time.
#pragma once
#include <limits>
#include <type_traits>

#include "decode/column_span.h"

namespace st {

// Integers become double first, as cells that come one by one do.
template <class T, class Slot, bool POSITIVE_ZERO, class Fits>
[[gnu::always_inline]] inline bool put_floats_by(const char *from, u8 *to, u64 stride, u32 count, Fits fits) {
    using Real = std::conditional_t<std::is_same_v<T, f32>, f32, f64>;
    u32 bad = 0;
    for (u32 i = 0; i < count; ++i) {
        const Real given = static_cast<Real>(load_little<T>(from + sizeof(T) * i));
        bad |= !fits(static_cast<f32>(given));
        Slot value = static_cast<Slot>(given);
        if constexpr (POSITIVE_ZERO) value += 0;   // a class has no negative zero
        std::memcpy(to + i * stride, &value, sizeof value);
    }
    return !bad;
}

template <class T, class Slot, bool POSITIVE_ZERO, class Fits>
bool put_floats_of(const ColumnSpan &span, u32 row, RowBlock &rows, Place place, Fits fits) {
    const char *from = span.data + sizeof(T) * u64{row};
    u8 *const to = rows.at(place);
    const u64 stride = rows.stride(place);
    return stride == sizeof(Slot)   // alone in its block: by whole vectors
               ? put_floats_by<T, Slot, POSITIVE_ZERO>(from, to, sizeof(Slot), rows.count, fits)
               : put_floats_by<T, Slot, POSITIVE_ZERO>(from, to, stride, rows.count, fits);
}

inline bool are_booleans(const ColumnSpan &span, u32 row, u32 count) {
    u8 all = 0;
    for (u32 i = 0; i < count; ++i) all |= static_cast<u8>(span.data[row + i]);
    return all <= 1;
}

// False where a value does not fit, after rounding to float32, or the cells are no numbers.
template <bool POSITIVE_ZERO = false, class Slot = f32, class Fits>
bool put_floats(const ColumnSpan &span, u32 row, RowBlock &rows, Place place, Fits fits) {
    switch (span.type) {
        case CellType::f32: return put_floats_of<f32, Slot, POSITIVE_ZERO>(span, row, rows, place, fits);
        case CellType::f64: return put_floats_of<f64, Slot, POSITIVE_ZERO>(span, row, rows, place, fits);
        case CellType::i8: return put_floats_of<i8, Slot, POSITIVE_ZERO>(span, row, rows, place, fits);
        case CellType::i16: return put_floats_of<std::int16_t, Slot, POSITIVE_ZERO>(span, row, rows, place, fits);
        case CellType::i32: return put_floats_of<i32, Slot, POSITIVE_ZERO>(span, row, rows, place, fits);
        case CellType::i64: return put_floats_of<i64, Slot, POSITIVE_ZERO>(span, row, rows, place, fits);
        case CellType::u8: return put_floats_of<u8, Slot, POSITIVE_ZERO>(span, row, rows, place, fits);
        case CellType::u16: return put_floats_of<u16, Slot, POSITIVE_ZERO>(span, row, rows, place, fits);
        case CellType::u32: return put_floats_of<u32, Slot, POSITIVE_ZERO>(span, row, rows, place, fits);
        case CellType::u64: return put_floats_of<u64, Slot, POSITIVE_ZERO>(span, row, rows, place, fits);
        case CellType::boolean:
            return are_booleans(span, row, rows.count) &&
                   put_floats_of<u8, Slot, POSITIVE_ZERO>(span, row, rows, place, fits);
        default: return false;
    }
}

}  // namespace st
