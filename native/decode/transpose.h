// Columns of float32 → rows of float32 or float64, checking that all are in range on the way: what the packed format's
// speed is made of. rows x columns at `to` (row stride in elements) from columns[c][0..rows), any alignment; false if a
// value is NaN or larger than LARGEST, and maybe where many are nearly so.
#pragma once
#include <cmath>
#include <cstring>

#include "base/types.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace st {

constexpr f32 LARGEST = 1e18f;   // of a number: the square of a larger one may overflow float32, and so end a run

inline bool fits_float(f32 value) { return std::abs(value) <= LARGEST; }

template <class T>
bool transpose_plain(const char *const *columns, u32 column_count, u32 rows, T *to, u64 stride) {
    bool good = true;
    for (u32 c = 0; c < column_count; ++c) {
        for (u32 r = 0; r < rows; ++r) {
            f32 value;
            std::memcpy(&value, columns[c] + u64{4} * r, 4);
            good &= fits_float(value);
            to[r * stride + c] = value;
        }
    }
    return good;
}

#if defined(__x86_64__)

// Tiles of 8 rows: quarters of registers are filled from the columns straight from memory, so that only the 4 x 4 turns
// within quarters are left to do, and their outcome is whole rows. The sum of squares is below LARGEST^2 where all are
// in range, but for many near it: one fused operation a register finds the others. ns a row of 28 columns, of 256 rows
// (Zen 5): plain 14, AVX2 2.3, AVX-512 2.1, memcpy 1.4.
#define ST_AVX2 __attribute__((target("avx2,fma")))
#define ST_AVX512 __attribute__((target("avx512f,avx512dq")))

// Columns c, c + 1, ... of a tile of `width`; behind the last one the first again, whose values are not stored.
template <u32 WIDTH>
struct TileColumns {
    const char *from[WIDTH];
    TileColumns(const char *const *columns, u32 width) {
        for (u32 j = 0; j < WIDTH; ++j) from[j] = columns[j < width ? j : 0];
    }
    const f32 *at(u32 column, u32 row) const { return reinterpret_cast<const f32 *>(from[column] + u64{4} * row); }
};

// A row of a tile; of one that is not whole, the lanes of the mask.
ST_AVX2 [[gnu::always_inline]] inline void store_row(f32 *out, __m256 row, bool whole, __m256i mask) {
    if (whole) _mm256_storeu_ps(out, row);
    else _mm256_maskstore_ps(out, mask, row);
}
ST_AVX2 [[gnu::always_inline]] inline void store_row(f64 *out, __m256 row, bool whole, __m256i mask) {
    const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(row));
    const __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(row, 1));
    if (whole) {
        _mm256_storeu_pd(out, low);
        _mm256_storeu_pd(out + 4, high);
    } else {
        _mm256_maskstore_pd(out, _mm256_cvtepi32_epi64(_mm256_castsi256_si128(mask)), low);
        _mm256_maskstore_pd(out + 4, _mm256_cvtepi32_epi64(_mm256_extracti128_si256(mask, 1)), high);
    }
}

template <class T>
ST_AVX2 bool transpose_avx2(const char *const *columns, u32 column_count, u32 rows, T *to, u64 stride) {
    const __m256 zero = _mm256_setzero_ps();
    __m256 squares[2] = {zero, zero};
    for (u32 next = 0; next < column_count; next += 8) {
        const u32 c = next + 8 > column_count && column_count > 8 ? column_count - 8 : next;   // the last tile overlaps
        const u32 width = column_count - c < 8 ? column_count - c : 8;
        const TileColumns<8> tile(columns + c, width);
        alignas(32) i32 lanes[8];
        for (u32 j = 0; j < 8; ++j) lanes[j] = j < width ? -1 : 0;
        const __m256i mask = _mm256_load_si256(reinterpret_cast<const __m256i *>(lanes));
        for (u32 r = 0; r < rows; r += 8) {
            __m256 x[2][4];
#pragma GCC unroll 4
            for (u32 k = 0; k < 4; ++k) {
#pragma GCC unroll 2
                for (u32 h = 0; h < 2; ++h) {
                    x[h][k] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(tile.at(k, r + 4 * h))),
                                                   _mm_loadu_ps(tile.at(k + 4, r + 4 * h)), 1);
                    squares[h] = _mm256_fmadd_ps(x[h][k], x[h][k], squares[h]);
                }
            }
#pragma GCC unroll 2
            for (u32 h = 0; h < 2; ++h) {
                const __m256 a = _mm256_unpacklo_ps(x[h][0], x[h][1]), b = _mm256_unpackhi_ps(x[h][0], x[h][1]);
                const __m256 d = _mm256_unpacklo_ps(x[h][2], x[h][3]), e = _mm256_unpackhi_ps(x[h][2], x[h][3]);
                const __m256 row[4] = {_mm256_shuffle_ps(a, d, 0x44), _mm256_shuffle_ps(a, d, 0xee),
                                       _mm256_shuffle_ps(b, e, 0x44), _mm256_shuffle_ps(b, e, 0xee)};
                T *out = to + (r + 4 * h) * stride + c;
#pragma GCC unroll 4
                for (u32 k = 0; k < 4; ++k) store_row(out + k * stride, row[k], width == 8, mask);
            }
        }
    }
    const __m256 sum = _mm256_add_ps(squares[0], squares[1]);
    return _mm256_movemask_ps(_mm256_cmp_ps(sum, _mm256_set1_ps(LARGEST * LARGEST), _CMP_LT_OQ)) == 0xff;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"   // GCC 12's own header, by way of _mm512_undefined_ps
ST_AVX512 [[gnu::always_inline]] inline void store_row(f32 *out, __m512 row, bool whole, __mmask16 mask) {
    if (whole) _mm512_storeu_ps(out, row);
    else _mm512_mask_storeu_ps(out, mask, row);
}
ST_AVX512 [[gnu::always_inline]] inline void store_row(f64 *out, __m512 row, bool whole, __mmask16 mask) {
    const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(row));
    const __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(row, 1));
    if (whole) {
        _mm512_storeu_pd(out, low);
        _mm512_storeu_pd(out + 8, high);
    } else {
        _mm512_mask_storeu_pd(out, static_cast<__mmask8>(mask), low);
        _mm512_mask_storeu_pd(out + 8, static_cast<__mmask8>(mask >> 8), high);
    }
}

template <class T>
ST_AVX512 bool transpose_avx512(const char *const *columns, u32 column_count, u32 rows, T *to, u64 stride) {
    const __m512 zero = _mm512_setzero_ps();
    __m512 squares[2] = {zero, zero};
    for (u32 next = 0; next < column_count; next += 16) {
        const u32 c =
            next + 16 > column_count && column_count > 16 ? column_count - 16 : next;   // the last tile overlaps
        const u32 width = column_count - c < 16 ? column_count - c : 16;
        const TileColumns<16> tile(columns + c, width);
        const __mmask16 mask = static_cast<__mmask16>((1u << width) - 1);
        for (u32 r = 0; r < rows; r += 8) {
            __m512 x[2][4];
#pragma GCC unroll 4
            for (u32 k = 0; k < 4; ++k) {
#pragma GCC unroll 2
                for (u32 h = 0; h < 2; ++h) {
                    x[h][k] = _mm512_castps128_ps512(_mm_loadu_ps(tile.at(k, r + 4 * h)));
                    x[h][k] = _mm512_mask_broadcast_f32x4(x[h][k], 0x00f0, _mm_loadu_ps(tile.at(k + 4, r + 4 * h)));
                    x[h][k] = _mm512_mask_broadcast_f32x4(x[h][k], 0x0f00, _mm_loadu_ps(tile.at(k + 8, r + 4 * h)));
                    x[h][k] = _mm512_mask_broadcast_f32x4(x[h][k], 0xf000, _mm_loadu_ps(tile.at(k + 12, r + 4 * h)));
                    squares[h] = _mm512_fmadd_ps(x[h][k], x[h][k], squares[h]);
                }
            }
#pragma GCC unroll 2
            for (u32 h = 0; h < 2; ++h) {
                const __m512 a = _mm512_unpacklo_ps(x[h][0], x[h][1]), b = _mm512_unpackhi_ps(x[h][0], x[h][1]);
                const __m512 d = _mm512_unpacklo_ps(x[h][2], x[h][3]), e = _mm512_unpackhi_ps(x[h][2], x[h][3]);
                const __m512 row[4] = {_mm512_shuffle_ps(a, d, 0x44), _mm512_shuffle_ps(a, d, 0xee),
                                       _mm512_shuffle_ps(b, e, 0x44), _mm512_shuffle_ps(b, e, 0xee)};
                T *out = to + (r + 4 * h) * stride + c;
#pragma GCC unroll 4
                for (u32 k = 0; k < 4; ++k) store_row(out + k * stride, row[k], width == 16, mask);
            }
        }
    }
    const __m512 sum = _mm512_add_ps(squares[0], squares[1]);
    return _mm512_cmp_ps_mask(sum, _mm512_set1_ps(LARGEST * LARGEST), _CMP_LT_OQ) == 0xffff;
}
#pragma GCC diagnostic pop

// The rows behind the last whole tile.
template <class T, class Tiles>
bool transpose_with(Tiles tiles, const char *const *columns, u32 column_count, u32 rows, T *to, u64 stride) {
    const u32 whole = rows & ~7u;
    bool good = tiles(columns, column_count, whole, to, stride);
    for (u32 c = 0; c < column_count && whole < rows; ++c) {
        const char *rest = columns[c] + u64{4} * whole;
        good &= transpose_plain(&rest, 1, rows - whole, to + whole * stride + c, stride);
    }
    return good;
}
#endif

template <class T>
bool transpose(const char *const *columns, u32 column_count, u32 rows, T *to, u64 stride) {
#if defined(__x86_64__)
    static const bool has_avx512 = __builtin_cpu_supports("avx512dq");
    static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (has_avx512) return transpose_with(transpose_avx512<T>, columns, column_count, rows, to, stride);
    if (has_avx2) return transpose_with(transpose_avx2<T>, columns, column_count, rows, to, stride);
#endif
    return transpose_plain(columns, column_count, rows, to, stride);
}

}  // namespace st
