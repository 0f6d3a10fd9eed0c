// Numbers of a record, of type T, into columns of floats that lie side by side in a row of a slot.
#pragma once
#include <algorithm>
#include <bit>
#include <cstring>

#include "decode/transpose.h"

namespace st::plain_floats {

template <class Slot, class T>
[[gnu::always_inline]] inline void put(u8 *to, T value) {
    const Slot stored = static_cast<Slot>(value);
    std::memcpy(to, &stored, sizeof stored);
}

// As many as value_at(i, value) gives and fit, at most `most`: how many were.
template <class Slot, class T, class ValueAt>
[[gnu::always_inline]] inline u64 put_each(u8 *to, u64 most, ValueAt value_at) {
    u64 i = 0;
    for (T value; i < most && value_at(i, value) && fits_float(static_cast<f32>(value)); ++i)
        put<Slot>(to + sizeof(Slot) * i, value);
    return i;
}

// All that value_at(i) gives; false where one does not fit. By the bits: LARGEST is below all that are not finite.
template <class Slot, class ValueAt>
[[gnu::always_inline]] inline bool put_all(u8 *to, u64 count, ValueAt value_at) {
    u32 largest = 0;
    for (u64 i = 0; i < count; ++i) {
        const auto value = value_at(i);
        const u32 bits = std::bit_cast<u32>(static_cast<f32>(value));
        if constexpr (sizeof(Slot) == sizeof bits) std::memcpy(to + sizeof bits * i, &bits, sizeof bits);
        else put<Slot>(to + sizeof(Slot) * i, value);
        largest = std::max(largest, bits & 0x7fffffffu);
    }
    return largest <= std::bit_cast<u32>(LARGEST);
}

}  // namespace st::plain_floats
