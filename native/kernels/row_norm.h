// Rows brought to one size: h = (x - mean) factor with factor = 1 / sqrt(mean of (x - mean)^2 + epsilon), y = h scale +
// shift (Ba, Kiros, Hinton: Layer normalization, 2016). Without `centers` the mean is taken as 0 and shift is null
// (Zhang, Sennrich: Root mean square layer normalization, 2019). With g = dy scale, dx = (g - mean of g - h mean of
// g h) factor, the middle term with `centers`.
#pragma once
#include "base/kernel.h"

ST_KERNEL void row_norm_forward(i64 rows, i64 columns, i32 centers, f32 epsilon, const f32 *x_rc, const f32 *scale_c,
                                const f32 *shift_c, f32 *y_rc, f32 *mean_r, f32 *factor_r) {
    const f32 count = static_cast<f32>(columns);
    ST_ROWS(r, rows) {
        const f32 *x = x_rc + r * columns;
        f32 *y = y_rc + r * columns;
        const f32 mean = centers ? sum<f32>(columns, [&](i64 c) { return x[c]; }) / count : 0.0f;
        // in double: the square of a float may be no float
        const f64 squares = sum<f64>(columns, [&](i64 c) { return f64(x[c] - mean) * (x[c] - mean); });
        const f32 factor = static_cast<f32>(1.0 / sqrt(squares / count + epsilon));
        ST_FIRST_LANE {
            mean_r[r] = mean;
            factor_r[r] = factor;
        }
        ST_LANES(c, columns) y[c] = (x[c] - mean) * factor * scale_c[c] + (shift_c ? shift_c[c] : 0.0f);
    }
}
ST_EXPORT(row_norm_forward)

ST_KERNEL void row_norm_gradient(i64 rows, i64 columns, i32 centers, const f32 *dy_rc, const f32 *x_rc,
                                 const f32 *scale_c, const f32 *mean_r, const f32 *factor_r, f32 *dx_rc) {
    const f32 count = static_cast<f32>(columns);
    ST_ROWS(r, rows) {
        const f32 *dy = dy_rc + r * columns, *x = x_rc + r * columns, mean = mean_r[r], factor = factor_r[r];
        f32 *dx = dx_rc + r * columns;
        const f32 level = centers ? sum<f32>(columns, [&](i64 c) { return dy[c] * scale_c[c]; }) / count : 0.0f;
        const f32 along =
            sum<f32>(columns, [&](i64 c) { return dy[c] * scale_c[c] * ((x[c] - mean) * factor); }) / count;
        ST_LANES(c, columns) dx[c] = (dy[c] * scale_c[c] - level - (x[c] - mean) * factor * along) * factor;
    }
}
ST_EXPORT(row_norm_gradient)

constexpr i64 norm_piece = ST_CUDA ? 1 : 64;    // columns that are gathered together

// dscale = the sum of dy h over the rows in ascending r, dshift (null without a shift) that of dy.
ST_KERNEL void row_norm_grad_scale(i64 rows, i64 columns, const f32 *dy_rc, const f32 *x_rc, const f32 *mean_r,
                                   const f32 *factor_r, f32 *dscale_c, f32 *dshift_c) {
    ST_FOR(piece, (columns + norm_piece - 1) / norm_piece) {
        const i64 first = piece * norm_piece, count = smaller(norm_piece, columns - first);
        f64 scales[norm_piece] = {}, shifts[norm_piece] = {};
        for (i64 begin = 0; begin < rows; begin += CHAIN_ROWS) {
            f32 scale[norm_piece] = {}, shift[norm_piece] = {};
            for (i64 r = begin; r < smaller(begin + CHAIN_ROWS, rows); ++r) {
                const f32 *dy = dy_rc + r * columns + first, *x = x_rc + r * columns + first;
                const f32 mean = mean_r[r], factor = factor_r[r];
                for (i64 c = 0; c < count; ++c) {
                    scale[c] += dy[c] * ((x[c] - mean) * factor);
                    shift[c] += dy[c];
                }
            }
            for (i64 c = 0; c < count; ++c) {
                scales[c] += scale[c];
                shifts[c] += shift[c];
            }
        }
        for (i64 c = 0; c < count; ++c) {
            dscale_c[first + c] = static_cast<f32>(scales[c]);
            if (dshift_c) dshift_c[first + c] = static_cast<f32>(shifts[c]);
        }
    }
}
ST_EXPORT(row_norm_grad_scale)
