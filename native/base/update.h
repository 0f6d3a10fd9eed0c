// What all optimizers share: a formula over the flat vector of dense parameters, and over the rows of a table that the
// batch touched. Nothing where the batch had no weight; flags what is not finite.
//
// A formula is a struct with `kept` (vectors it keeps beside the parameters, at most 3), `factors` (of its settings), a
// constructor from the step's rate, the step's number and its factors, and next(), which changes what it keeps and
// gives the parameter. ST_OPTIMIZER(name, Formula) makes the kernels <name> and <name>_rows of it.
#pragma once
#include "base/bucket.h"
#include "base/math.h"
#include "base/power.h"
#include "base/step.h"
#include "base/thunk.h"

namespace st {
inline namespace ST_ISA {

// Settings of a stretch of parameters, in the order of compute/ops/_update.py; behind them the formula's factors.
constexpr int update_columns = 6;

// What becomes of a gradient before the formula sees it: clipped, then with the slope of the penalties l1 |p| and
// l2 p^2 / 2; and of the parameter: it shrinks by rate x decay (Loshchilov, Hutter: Decoupled weight decay
// regularization, 2019).
struct Shaping {
    f64 rate;
    f32 l1, l2, decay, clip, scale;
    bool plain;   // leaves both as they are

    ST_MEMBER Shaping(const StepBlock *step, const f64 *settings, const f32 *its_scale)
        : rate(f64(step->learning_rate) * settings[1]), l1(f32(settings[2])), l2(f32(settings[3])),
          decay(f32(rate * settings[4])), clip(f32(settings[5])), scale(its_scale ? *its_scale : 1.0f),
          plain(!its_scale && settings[2] == 0 && settings[3] == 0 && settings[4] == 0 && settings[5] == 0) {}

    ST_MEMBER f32 gradient(f32 g, f32 p) const {
        g *= scale;
        if (clip > 0) g = g > clip ? clip : g < -clip ? -clip : g;   // a NaN stays one
        f32 slope = p > 0 ? l1 : p < 0 ? -l1 : 0.0f;
        return g + fma(l2, p, slope);
    }
    ST_MEMBER f32 parameter(f32 p) const { return fma(-decay, p, p); }
};

// One element: the i-th of p and of each vector that is kept.
template <bool plain, class Formula>
ST_INLINE i32 update_one(const Formula &formula, const Shaping &shaping, f32 g, f32 *p, f32 *const *held, i64 i) {
    f32 kept[3];
    ST_UNROLL for (int k = 0; k < Formula::kept; ++k) kept[k] = held[k][i];
    f32 next = plain ? formula.next(g, p[i], kept)
                     : formula.next(shaping.gradient(g, p[i]), shaping.parameter(p[i]), kept);
    i32 bad = not_finite(next);
    ST_UNROLL for (int k = 0; k < Formula::kept; ++k) {
        held[k][i] = kept[k];
        bad |= not_finite(kept[k]);
    }
    p[i] = next;
    return bad;
}

template <bool plain, class Formula>
ST_INLINE i32 update_stretch(i64 first, i64 n, const Formula &formula, const Shaping &shaping, const f32 *g, f32 *p,
                             f32 *const *held) {
    i32 bad = 0;
    ST_FOR(i, n) bad |= update_one<plain>(formula, shaping, g[first + i], p, held, first + i);
    return bad;
}

// The stretches follow each other; column 0 of the settings says where each ends.
template <class Formula>
ST_INLINE void update_all(i64 stretches, StepBlock *step, const f64 *settings_sk, const f32 *scale_s, const f32 *g_n,
                          f32 *p_n, f32 *const *held) {
    if (!(step->weight_sum > 0)) return;
    i32 bad = 0;
    i64 first = 0;
    for (i64 s = 0; s < stretches; ++s) {
        const f64 *settings = settings_sk + s * (update_columns + Formula::factors);
        const Shaping shaping(step, settings, scale_s ? scale_s + s : nullptr);
        const Formula formula(shaping.rate, step->number, settings + update_columns);
        i64 end = i64(settings[0]), n = end - first;
        if (shaping.plain)
            bad |= update_stretch<true>(first, n, formula, shaping, g_n, p_n, held);
        else
            bad |= update_stretch<false>(first, n, formula, shaping, g_n, p_n, held);
        first = end;
    }
    if (bad) step->not_finite = 1;
}

// Of the batch's entries those that lead (kernels/embedding.h): the row of each table that each is for. Of each array
// with an entry for each of the batch's there are `capacity`, table by table.
struct Touched {
    i64 rows, capacity, columns, tables;
    const i64 *tables_tk;
    const i32 *ends_r, *categories_ec, *lead_te;
    const f64 *g_eu;
};

template <bool plain, class Formula>
ST_INLINE void update_touched(const Touched &touched, StepBlock *step, const Formula &formula, const Shaping &shaping,
                              const f32 *scale_t, f32 *const *p_t, f32 *const *const *held_t) {
    const i64 entries = entry_count(touched.rows, touched.ends_r);
    auto start = [&](const EntryTable &table, i64 dim, i64 e) ST_LAMBDA {
        return embedding_bucket(touched.categories_ec, e, touched.columns, table.column, table.buckets) * dim;
    };
    auto fetch = [&](const EntryTable &table, i64 dim, i64 e) ST_LAMBDA {
        const i64 row = start(table, dim, e);
        fetch_row(p_t[table.number] + row, dim);
        ST_UNROLL for (int k = 0; k < Formula::kept; ++k) fetch_row(held_t[k][table.number] + row, dim);
    };
    by_table(touched.tables, touched.tables_tk, entries, fetch, [&](const EntryTable &table, i64 dim, i64 e) ST_LAMBDA {
        const i64 t = table.number;
        if (touched.lead_te[t * touched.capacity + e] != e) return;
        const f64 *g = touched.g_eu + table.before * touched.capacity + e * dim;
        Shaping its = shaping;
        if (scale_t) its.scale = scale_t[t];
        f32 *p = p_t[t], *held[3];
        ST_UNROLL for (int k = 0; k < Formula::kept; ++k) held[k] = held_t[k][t];
        const i64 at = start(table, dim, e);
        i32 bad = 0;
        ST_LANES(d, dim) bad |= update_one<plain>(formula, its, static_cast<f32>(g[d]), p, held, at + d);
        if (bad) step->not_finite = 1;
    });
}

// Other rows keep what they have, whatever would shrink them.
template <class Formula>
ST_INLINE void update_rows(const Touched &touched, StepBlock *step, const f64 *settings_k, const f32 *scale_t,
                           f32 *const *p_t, f32 *const *const *held_t) {
    if (!(step->weight_sum > 0)) return;
    const Shaping shaping(step, settings_k, scale_t);
    const Formula formula(shaping.rate, step->number, settings_k + update_columns);
    if (shaping.plain)
        update_touched<true>(touched, step, formula, shaping, scale_t, p_t, held_t);
    else
        update_touched<false>(touched, step, formula, shaping, scale_t, p_t, held_t);
}

}  // namespace ST_ISA
}  // namespace st

#define ST_OPTIMIZER_ROWS(name, Formula)                                                                           \
    ST_KERNEL void name##_rows(i64 rows, i64 entries, i64 columns, i64 tables, i64 total, StepBlock *step,         \
                               const f64 *settings_k, const f32 *scale_t, const i64 *tables_tk, const i32 *ends_r, \
                               const i32 *categories_ec, const i32 *lead_te, const f64 *g_eu, f32 *const *p_t,     \
                               f32 *const *a_t, f32 *const *b_t, f32 *const *c_t) {                                \
        (void)total;                                                                                               \
        f32 *const *held_t[] = {a_t, b_t, c_t};                                                                    \
        update_rows<Formula>({rows, entries, columns, tables, tables_tk, ends_r, categories_ec, lead_te, g_eu},    \
                             step, settings_k, scale_t, p_t, held_t);                                              \
    }                                                                                                              \
    ST_EXPORT_UPDATE(name##_rows)

#define ST_OPTIMIZER(name, Formula)                                                                                \
    ST_KERNEL void name(i64 n, i64 stretches, StepBlock *step, const f64 *settings_sk, const f32 *scale_s,         \
                        const f32 *g_n, f32 *p_n, f32 *a_n, f32 *b_n, f32 *c_n) {                                  \
        f32 *held[] = {a_n, b_n, c_n};                                                                             \
        update_all<Formula>(stretches, step, settings_sk, scale_s, g_n, p_n, held);                                \
    }                                                                                                              \
    ST_EXPORT_UPDATE(name)                                                                                         \
    ST_OPTIMIZER_ROWS(name, Formula)
