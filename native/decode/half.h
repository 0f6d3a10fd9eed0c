// Numbers of 16 bits (IEEE 754 binary16) as float32, exactly.
#pragma once
#include <cmath>

#include "base/types.h"

namespace st {

inline f32 half_number(u16 bits) {
    const u32 exponent = bits >> 10 & 31, fraction = bits & 1023;
    f32 value;
    if (exponent == 31) value = fraction ? NAN : INFINITY;
    else if (exponent == 0) value = std::ldexp(static_cast<f32>(fraction), -24);
    else value = std::ldexp(static_cast<f32>(fraction + 1024), static_cast<int>(exponent) - 25);
    return bits >> 15 ? -value : value;
}

}  // namespace st
