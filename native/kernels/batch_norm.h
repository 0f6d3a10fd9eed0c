// Columns brought to one size over the rows of a batch: h = (x - mean) factor with factor = 1 / sqrt(variance +
// epsilon), y = h scale + shift (Ioffe, Szegedy: Batch normalization, 2015). Rows of weight 0 count for nothing, all
// others for one. Batches of few such rows are normalised by the running statistics, which no gradient goes through.
#pragma once
#include "base/kernel.h"

constexpr i64 batch_piece = ST_CUDA ? 1 : 64;    // columns that are gathered together

// to_c = the sum over the counted rows in ascending r of term(r, c), for a piece of the columns.
template <class Term>
ST_INLINE void sum_counted(i64 rows, i64 columns, i64 piece, const f32 *weight_r, f32 *to_c, Term term) {
    const i64 first = piece * batch_piece, count = smaller(batch_piece, columns - first);
    f64 sums[batch_piece] = {};
    for (i64 begin = 0; begin < rows; begin += CHAIN_ROWS) {
        f32 chain[batch_piece] = {};
        for (i64 r = begin; r < smaller(begin + CHAIN_ROWS, rows); ++r) {
            if (!(weight_r[r] > 0)) continue;
            for (i64 c = 0; c < count; ++c) chain[c] += term(r, first + c);
        }
        for (i64 c = 0; c < count; ++c) sums[c] += chain[c];
    }
    for (i64 c = 0; c < count; ++c) to_c[first + c] = static_cast<f32>(sums[c]);
}

ST_INLINE i64 batch_pieces(i64 columns) { return (columns + batch_piece - 1) / batch_piece; }

// sum_c = that of the counted rows; count_1: how many they are.
ST_KERNEL void batch_norm_sum(i64 rows, i64 columns, const f32 *x_rc, const f32 *weight_r, f32 *sum_c, f32 *count_1) {
    ST_FOR(piece, batch_pieces(columns)) {
        sum_counted(rows, columns, piece, weight_r, sum_c, [&](i64 r, i64 c) { return x_rc[r * columns + c]; });
        if (piece == 0) {
            i64 counted = 0;
            for (i64 r = 0; r < rows; ++r) counted += weight_r[r] > 0;
            count_1[0] = static_cast<f32>(counted);
        }
    }
}
ST_EXPORT(batch_norm_sum)

// squares_c = the sum of (x - mean)^2 of the counted rows, mean = sum / count.
ST_KERNEL void batch_norm_squares(i64 rows, i64 columns, const f32 *x_rc, const f32 *weight_r, const f32 *sum_c,
                                  const f32 *count_1, f32 *squares_c) {
    const f32 count = count_1[0];
    ST_FOR(piece, batch_pieces(columns)) {
        sum_counted(rows, columns, piece, weight_r, squares_c, [&](i64 r, i64 c) {
            const f32 apart = x_rc[r * columns + c] - sum_c[c] / count;
            return apart * apart;
        });
    }
}
ST_EXPORT(batch_norm_squares)

// What a batch is normalised by, and the running statistics behind it. Each goes `momentum` of its way to the batch's
// mean and unbiased variance; with fewer than `least` rows as much less, to those of an exponentially weighted mean.
ST_KERNEL void batch_norm_settle(i64 columns, i64 least, f32 momentum, f32 epsilon, const f32 *count_1,
                                 const f32 *sum_c, const f32 *squares_c, StepBlock *step, f32 *running_mean_c,
                                 f32 *running_variance_c, f32 *mean_c, f32 *factor_c) {
    const f64 count = count_1[0];
    const bool own = count >= f64(least);
    const f64 part = own ? f64(momentum) : momentum * count / f64(least);
    ST_FOR(c, columns) {
        const f64 old_mean = running_mean_c[c], old_variance = running_variance_c[c];
        mean_c[c] = own ? sum_c[c] / count_1[0] : running_mean_c[c];
        factor_c[c] = static_cast<f32>(1.0 / sqrt((own ? squares_c[c] / count : old_variance) + epsilon));
        const f64 apart = sum_c[c] / count - old_mean;
        const f64 variance = own ? squares_c[c] / (count - 1) : squares_c[c] / count + (1 - part) * apart * apart;
        const f32 mean = static_cast<f32>(old_mean + part * apart);
        const f32 spread = static_cast<f32>(old_variance + part * (variance - old_variance));
        if (count >= 1) {
            running_mean_c[c] = mean;
            running_variance_c[c] = spread;
            if (not_finite(mean) | not_finite(spread)) step->not_finite = 1;
        }
    }
}
ST_EXPORT(batch_norm_settle)

// What a prediction is normalised by.
ST_KERNEL void batch_norm_factor(i64 columns, f32 epsilon, const f32 *running_variance_c, f32 *factor_c) {
    ST_FOR(c, columns) factor_c[c] = static_cast<f32>(1.0 / sqrt(f64(running_variance_c[c]) + epsilon));
}
ST_EXPORT(batch_norm_factor)

ST_KERNEL void batch_norm_forward(i64 rows, i64 columns, const f32 *x_rc, const f32 *mean_c, const f32 *factor_c,
                                  const f32 *scale_c, const f32 *shift_c, f32 *y_rc) {
    ST_ROWS(r, rows) {
        const f32 *x = x_rc + r * columns;
        f32 *y = y_rc + r * columns;
        ST_LANES(c, columns) y[c] = (x[c] - mean_c[c]) * factor_c[c] * scale_c[c] + shift_c[c];
    }
}
ST_EXPORT(batch_norm_forward)

// dscale = the sum of dy h over the counted rows, dshift that of dy.
ST_KERNEL void batch_norm_grad_scale(i64 rows, i64 columns, const f32 *dy_rc, const f32 *x_rc, const f32 *weight_r,
                                     const f32 *mean_c, const f32 *factor_c, f32 *dscale_c, f32 *dshift_c) {
    ST_FOR(piece, batch_pieces(columns)) {
        sum_counted(rows, columns, piece, weight_r, dscale_c, [&](i64 r, i64 c) {
            return dy_rc[r * columns + c] * ((x_rc[r * columns + c] - mean_c[c]) * factor_c[c]);
        });
        sum_counted(rows, columns, piece, weight_r, dshift_c, [&](i64 r, i64 c) { return dy_rc[r * columns + c]; });
    }
}
ST_EXPORT(batch_norm_grad_scale)

// dx = scale factor (dy - (dshift + h dscale) / count); with fewer than `least` rows scale factor dy.
ST_KERNEL void batch_norm_gradient(i64 rows, i64 columns, i64 least, const f32 *dy_rc, const f32 *x_rc,
                                   const f32 *weight_r, const f32 *count_1, const f32 *scale_c, const f32 *mean_c,
                                   const f32 *factor_c, const f32 *dscale_c, const f32 *dshift_c, f32 *dx_rc) {
    const f32 share = count_1[0] >= f32(least) ? 1.0f / count_1[0] : 0.0f;
    ST_ROWS(r, rows) {
        const f32 *dy = dy_rc + r * columns, *x = x_rc + r * columns;
        f32 *dx = dx_rc + r * columns;
        const bool counted = weight_r[r] > 0;
        ST_LANES(c, columns) {
            const f32 h = (x[c] - mean_c[c]) * factor_c[c];
            const f32 way = scale_c[c] * factor_c[c] * (dy[c] - share * (dshift_c[c] + h * dscale_c[c]));
            dx[c] = counted ? way : 0.0f;
        }
    }
}
ST_EXPORT(batch_norm_gradient)
