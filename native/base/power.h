// base^exponent by squaring: multiplications only, so that every machine gives the same bits.
#pragma once
#include "base/lane.h"

namespace st {
inline namespace ST_ISA {

ST_INLINE f64 power(f64 base, i64 exponent) {
    f64 result = 1;
    for (; exponent > 0; exponent >>= 1, base *= base)
        if (exponent & 1) result *= base;
    return result;
}

}  // namespace ST_ISA
}  // namespace st
