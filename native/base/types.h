// The few names every native file uses.
#pragma once
#if defined(__CUDACC_RTC__)   // NVRTC has no standard headers
namespace std {
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
}  // namespace std
#else
#include <cstddef>
#include <cstdint>
#endif

namespace st {

using i8 = std::int8_t;
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using i32 = std::int32_t;
using u32 = std::uint32_t;
using i64 = std::int64_t;
using u64 = std::uint64_t;
using f32 = float;
using f64 = double;

constexpr u64 CACHE_LINE = 64;   // bytes: where blocks and buffers begin
constexpr u64 align64(u64 bytes) { return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE; }

enum class Dtype : u32 { f32 = 0, f64 = 1, i32 = 2, i64 = 3, u8 = 4 };
constexpr const char *DTYPE_NAMES[] = {"f32", "f64", "i32", "i64", "u8"};

constexpr u32 bytes_of(Dtype dtype) {
    return dtype == Dtype::u8 ? 1 : dtype == Dtype::f32 || dtype == Dtype::i32 ? 4 : 8;
}

constexpr const char *name_of(Dtype dtype) { return DTYPE_NAMES[static_cast<u32>(dtype)]; }

}  // namespace st
