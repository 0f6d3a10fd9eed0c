// The logarithm of a clip's energy in bands of the mel scale: y[f, m] = log(max(floor, sum_k weight_m[k] |X_f[k]|^2))
// with X_f the discrete Fourier transform of `points` of the samples f step .. f step + window - 1 times `taper`, zeros
// behind them. Band m has the bins first_m[m], .. with the weights ends_m[m - 1] .. ends_m[m] - 1; none has bin 0 or
// points / 2. Davis, Mermelstein: Comparison of parametric representations for monosyllabic word recognition, 1980.
//
// The transform is that of points / 2 complex numbers, each two samples, in the bits' reversed order (Cooley, Tukey:
// An algorithm for the machine calculation of complex Fourier series, 1965), two of its stages in a pass. Frames lie
// side by side, so that every operation is one of vectors: 8 x NumPy. No fma, which the plainest processors lack.
#pragma once
#include "base/kernel.h"

constexpr i64 frames_a_turn = 16;   // two vectors of AVX2; compute/ops/log_mel.py makes room for them

#define ST_FRAMES(i) ST_LANES(i, frames_a_turn)

// re and im of one of the transform's numbers, in all frames.
struct MelPoint {
    f32 *re, *im;
};
ST_INLINE MelPoint mel_point(f32 *work, i64 at) {
    return {work + at * 2 * frames_a_turn, work + at * 2 * frames_a_turn + frames_a_turn};
}

struct MelNumber {
    f32 re, im;
};
ST_INLINE MelNumber turned(MelNumber z, MelNumber by) {
    return {z.re * by.re - z.im * by.im, z.re * by.im + z.im * by.re};
}

// The samples of the frames from `first` on, tapered, where the transform wants them; behind the last it stands again.
ST_INLINE void mel_load(i64 first, i64 frames, i64 window, i64 step, i64 half, const f32 *wave, const f32 *taper,
                        f32 *work) {
    i64 reversed = 0;
    for (i64 pair = 0; pair < half; ++pair) {
        MelPoint to = mel_point(work, reversed);
        i64 even = 2 * pair, odd = even + 1;
        f32 of_even = even < window ? taper[even] : 0, of_odd = odd < window ? taper[odd] : 0;
        i64 from_even = even < window ? even : 0, from_odd = odd < window ? odd : 0;
        ST_FRAMES(i) {
            const f32 *frame = wave + smaller(first + i, frames - 1) * step;
            to.re[i] = frame[from_even] * of_even;
            to.im[i] = frame[from_odd] * of_odd;
        }
        i64 bit = half >> 1;
        for (; bit && (reversed & bit); bit >>= 1) reversed ^= bit;
        reversed |= bit;
    }
}

// One stage: from transforms of 1 number to those of 2.
ST_INLINE void mel_stage_of_pairs(i64 half, f32 *work) {
    for (i64 at = 0; at < half; at += 2) {
        MelPoint a = mel_point(work, at), b = mel_point(work, at + 1);
        ST_FRAMES(i) {
            f32 re = b.re[i], im = b.im[i];
            b.re[i] = a.re[i] - re, b.im[i] = a.im[i] - im;
            a.re[i] += re, a.im[i] += im;
        }
    }
}

// Two stages: from transforms of `size` numbers to those of 4 * size. turns[k] = e^(-2 pi i k / points).
ST_INLINE void mel_two_stages(i64 half, i64 size, const MelNumber *turns, f32 *work) {
    i64 wide = half / size, narrow = wide / 2;   // of the turns, from one number of a transform to the next
    for (i64 k = 0; k < size; ++k) {
        MelNumber by = turns[k * wide], low = turns[k * narrow], high = turns[(k + size) * narrow];
        for (i64 start = k; start < half; start += 4 * size) {
            MelPoint a = mel_point(work, start), b = mel_point(work, start + size);
            MelPoint c = mel_point(work, start + 2 * size), d = mel_point(work, start + 3 * size);
            ST_FRAMES(i) {
                MelNumber q = turned({b.re[i], b.im[i]}, by), s = turned({d.re[i], d.im[i]}, by);
                MelNumber even = {a.re[i] + q.re, a.im[i] + q.im}, odd = {a.re[i] - q.re, a.im[i] - q.im};
                MelNumber r = turned({c.re[i] + s.re, c.im[i] + s.im}, low);
                MelNumber t = turned({c.re[i] - s.re, c.im[i] - s.im}, high);
                a.re[i] = even.re + r.re, a.im[i] = even.im + r.im;
                b.re[i] = odd.re + t.re, b.im[i] = odd.im + t.im;
                c.re[i] = even.re - r.re, c.im[i] = even.im - r.im;
                d.re[i] = odd.re - t.re, d.im[i] = odd.im - t.im;
            }
        }
    }
}

// |X[k]|^2 of the transform of the samples in the place of Re Z[k], of their pairs' transform Z, for 0 < k < half.
ST_INLINE void mel_powers(i64 half, const MelNumber *turns, f32 *work) {
    for (i64 k = 1; 2 * k <= half; ++k) {
        MelPoint low = mel_point(work, k), high = mel_point(work, half - k);
        MelNumber by = turns[k];
        ST_FRAMES(i) {
            f32 a = low.re[i], b = low.im[i], c = high.re[i], d = high.im[i];
            MelNumber even = {0.5f * (a + c), 0.5f * (b - d)};
            MelNumber odd = turned({0.5f * (b + d), 0.5f * (c - a)}, by);
            f32 re = even.re + odd.re, im = even.im + odd.im, other_re = even.re - odd.re, other_im = even.im - odd.im;
            high.re[i] = other_re * other_re + other_im * other_im;
            low.re[i] = re * re + im * im;
        }
    }
}

// The energies of a band into the place of bin 0, which no band has.
ST_INLINE void mel_band(i64 count, const f32 *weights, i64 first_bin, f32 *work) {
    f32 *sum = mel_point(work, 0).re;
    ST_FRAMES(i) sum[i] = 0;
    for (i64 k = 0; k < count; ++k) {
        const f32 *power = mel_point(work, first_bin + k).re;
        ST_FRAMES(i) sum[i] += weights[k] * power[i];
    }
}

ST_KERNEL void log_mel(i64 turns, i64 frames, i64 samples, i64 window, i64 step, i64 half, i64 bands, i64 entries,
                       f32 floor, const f32 *wave, const f32 *taper, const f32 *turn_of, const i32 *first_m,
                       const i32 *ends_m, const f32 *weights, f32 *work, f32 *y_fm) {
    const MelNumber *turned_by = reinterpret_cast<const MelNumber *>(turn_of);
    i64 stages = 0;
    while (half >> (stages + 1)) ++stages;
    ST_ROWS(turn, turns) {
        f32 *own = work + (ST_CUDA ? turn * half * 2 * frames_a_turn : 0);
        const i64 first = turn * frames_a_turn;
        mel_load(first, frames, window, step, half, wave, taper, own);
        if (stages & 1) mel_stage_of_pairs(half, own);
        for (i64 size = 1 + (stages & 1); size < half; size *= 4) mel_two_stages(half, size, turned_by, own);
        mel_powers(half, turned_by, own);
        for (i64 m = 0; m < bands; ++m) {
            const i64 begin = m ? ends_m[m - 1] : 0;
            mel_band(ends_m[m] - begin, weights + begin, first_m[m], own);
            const f32 *sum = mel_point(own, 0).re;
            f32 *to = y_fm + first * bands + m, *logs = mel_point(own, 0).im;
            ST_FRAMES(i) logs[i] = st::log(larger(sum[i], floor));
            ST_FRAMES(i) if (first + i < frames) to[i * bands] = logs[i];
        }
    }
}
ST_EXPORT(log_mel)
