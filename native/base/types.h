// The few names every native file uses.
#pragma once
#include <cstddef>
#include <cstdint>

namespace st {

using i8 = std::int8_t;
using u8 = std::uint8_t;
using i32 = std::int32_t;
using u32 = std::uint32_t;
using i64 = std::int64_t;
using u64 = std::uint64_t;
using f32 = float;
using f64 = double;

constexpr u64 align64(u64 bytes) { return (bytes + 63) & ~u64{63}; }

enum class Dtype : u32 { f32 = 0, f64 = 1, i32 = 2, i64 = 3, u8 = 4 };

constexpr u32 bytes_of(Dtype dtype) {
    return dtype == Dtype::u8 ? 1 : dtype == Dtype::f32 || dtype == Dtype::i32 ? 4 : 8;
}

}  // namespace st
