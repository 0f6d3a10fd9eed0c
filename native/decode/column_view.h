// A column of numbers as a program's array holds it, or of as many numbers a row: any stride, of one physical type;
// nothing is owned.
#pragma once
#include <cmath>

#include "decode/cell_type.h"

namespace st {

struct ColumnView {
    CellType type = CellType::f32;   // f32 to boolean
    const char *data = nullptr;
    i64 stride = 0;                      // bytes from a cell to the next
    u32 elements = 0;                    // of a cell; 0: it is one number
    i64 element_stride = 0;

    // Calls one of to.missing() (NaN), number(f64), integer(magnitude, negative) and boolean(b).
    template <class To>
    void read(u64 row, To &to) const {
        read_at(data + stride * static_cast<i64>(row), to);
    }

    // The same for each number of a cell of many.
    template <class To>
    void each(u64 row, To &to) const {
        const char *const from = data + stride * static_cast<i64>(row);
        for (u32 i = 0; i < elements; ++i) read_at(from + element_stride * i, to);
    }

  private:
    template <class To>
    void read_at(const char *p, To &to) const {
        switch (type) {
            case CellType::f32: return real(load_little<f32>(p), to);
            case CellType::f64: return real(load_little<f64>(p), to);
            case CellType::i8: return whole(load_little<i8>(p), to);
            case CellType::i16: return whole(load_little<std::int16_t>(p), to);
            case CellType::i32: return whole(load_little<i32>(p), to);
            case CellType::i64: return whole(load_little<i64>(p), to);
            case CellType::u8: return to.integer(load_little<u8>(p), false);
            case CellType::u16: return to.integer(load_little<u16>(p), false);
            case CellType::u32: return to.integer(load_little<u32>(p), false);
            case CellType::u64: return to.integer(load_little<u64>(p), false);
            default: return to.boolean(*p != 0);
        }
    }

    template <class To>
    static void real(f64 value, To &to) {
        if (std::isnan(value)) to.missing();
        else to.number(value);
    }
    template <class To>
    static void whole(i64 value, To &to) {
        to.integer(value < 0 ? 0 - static_cast<u64>(value) : static_cast<u64>(value), value < 0);
    }
};

}  // namespace st
