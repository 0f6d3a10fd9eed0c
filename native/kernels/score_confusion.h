// Which class was taken for which: confusion_kk[label, predicted] += the weight of such a row, in ascending r.
#pragma once
#include "base/kernel.h"

// pair_r: label * classes + the likeliest class, of equals the first; -1 for a row of weight 0. rank_r: how many
// classes are likelier than a row's label; where none is there is nothing to look for.
ST_KERNEL void class_pair(i64 rows, i64 classes, const f32 *p_rk, const i32 *rank_r, const i32 *label_r,
                          const f32 *weight_r, i32 *pair_r) {
    ST_FOR(r, rows) {
        const f32 *p = p_rk + r * classes;
        const i32 label = label_r[r] >= 0 && label_r[r] < classes ? label_r[r] : 0;
        i32 best = rank_r[r] == 0 ? label : 0;
        if (rank_r[r] != 0)
            for (i64 k = 1; k < classes; ++k) best = p[k] > p[best] ? static_cast<i32>(k) : best;
        pair_r[r] = weight_r[r] > 0 ? label * static_cast<i32>(classes) + best : -1;
    }
}
ST_EXPORT(class_pair)

ST_KERNEL void score_confusion(i64 rows, i64 cells, const i32 *pair_r, const f32 *weight_r,
                               f64 *confusion_c) {
#if ST_CUDA
    ST_FOR(cell, cells) {
        f64 total = confusion_c[cell];
        for (i64 r = 0; r < rows; ++r)
            if (pair_r[r] == cell) total += weight_r[r];
        confusion_c[cell] = total;
    }
#else
    for (i64 r = 0; r < rows; ++r)
        if (pair_r[r] >= 0 && pair_r[r] < cells) confusion_c[pair_r[r]] += weight_r[r];
#endif
}
ST_EXPORT(score_confusion)
