// The second order of a factorization machine (Rendle: Factorization machines, 2010): y_r = the sum over d and all
// pairs of fields f < g of x_rfd x_rgd, in ascending g each with the sum of those before it: half of (sum x)^2 - sum of
// x^2 without its cancellation. dx_rfd = dy_r (sum over the fields of x_rd - x_rfd).
#pragma once
#include "base/kernel.h"

ST_KERNEL void factorization_forward(i64 rows, i64 fields, i64 width, const f32 *x_rfd, f32 *y_r) {
    ST_ROWS(r, rows) {
        const f32 *x = x_rfd + r * fields * width;
#if ST_CUDA
        const f32 total = sum<f32>(width, [&](i64 d) {
            f32 pairs = 0, before = 0;
            for (i64 f = 0; f < fields; ++f) {
                const f32 value = x[f * width + d];
                pairs += value * before;
                before += value;
            }
            return pairs;
        });
#else   // a field's numbers together, as they lie
        f32 part[lanes] = {};
        for (i64 first = 0; first < width; first += lanes) {
            const i64 count = smaller(lanes, width - first);
            f32 pairs[lanes] = {}, before[lanes] = {};
            for (i64 f = 0; f < fields; ++f)
                ST_FOR(d, count) {
                    const f32 value = x[f * width + first + d];
                    pairs[d] += value * before[d];
                    before[d] += value;
                }
            for (i64 d = 0; d < count; ++d) part[d] += pairs[d];
        }
        const f32 total = sum<f32>(smaller(lanes, width), [&](i64 d) { return part[d]; });
#endif
        ST_FIRST_LANE y_r[r] = total;
    }
}
ST_EXPORT(factorization_forward)

constexpr i64 factorization_piece = ST_CUDA ? 1 : lanes;   // columns of a field that are gathered together

ST_KERNEL void factorization_gradient(i64 rows, i64 fields, i64 width, const f32 *dy_r, const f32 *x_rfd,
                                      f32 *dx_rfd) {
    ST_ROWS(r, rows) {
        ST_LANES(piece, (width + factorization_piece - 1) / factorization_piece) {
            const i64 first = piece * factorization_piece, count = smaller(factorization_piece, width - first);
            const f32 *x = x_rfd + r * fields * width + first;
            f32 *dx = dx_rfd + r * fields * width + first;
            f32 total[factorization_piece] = {};
            for (i64 f = 0; f < fields; ++f)
                for (i64 d = 0; d < count; ++d) total[d] += x[f * width + d];
            for (i64 f = 0; f < fields; ++f)
                for (i64 d = 0; d < count; ++d) dx[f * width + d] = dy_r[r] * (total[d] - x[f * width + d]);
        }
    }
}
ST_EXPORT(factorization_gradient)
