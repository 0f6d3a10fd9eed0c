// Clipping by norm (Pascanu, Mikolov, Bengio: On the difficulty of training recurrent neural networks, 2013), over
// stretches of the flat vector and tables together: squares_s of each, then by how much each is scaled.
#pragma once
#include "base/kernel.h"

// The sums of g^2 over stretches that follow each other; column 0 of the settings says where each ends.
ST_KERNEL void gradient_squares(i64 n, i64 stretches, i64 columns, const f64 *settings_sk, const f32 *g_n,
                                f64 *squares_s) {
    ST_ROWS(s, stretches) {
        i64 first = s ? i64(settings_sk[(s - 1) * columns]) : 0, count = i64(settings_sk[s * columns]) - first;
        f64 total = sum<f64>(count, [&](i64 i) { return f64(g_n[first + i]) * f64(g_n[first + i]); });
        ST_FIRST_LANE squares_s[s] = total;
    }
}
ST_EXPORT(gradient_squares)

// The same of tables, over the entries that lead (kernels/embedding.h).
ST_KERNEL void gradient_squares_rows(i64 rows, i64 entries, i64 tables, i64 total, const i64 *tables_tk,
                                     const i32 *ends_r, const i32 *lead_te, const f64 *g_eu, f64 *squares_t) {
    (void)total;
    ST_ROWS(t, tables) {
        const EntryTable table(tables_tk, t);
        const i32 *lead_e = lead_te + t * entries;
        const f64 *g_ed = g_eu + table.before * entries;
        f64 its = 0;
        for (i64 e = 0; e < entry_count(rows, ends_r); ++e) {
            if (lead_e[e] != e) continue;
            its += sum<f64>(table.dim, [&](i64 d) {
                f64 g = static_cast<f32>(g_ed[e * table.dim + d]);
                return g * g;
            });
        }
        ST_FIRST_LANE squares_t[t] = its;
    }
}
ST_EXPORT(gradient_squares_rows)

ST_INLINE f64 shrinking(f64 limit, f64 squares) {
    f64 norm = sqrt(squares);
    return limit > 0 && norm > limit ? limit / norm : 1.0;
}

// First each group to its limit_s, then all together to `limit`; 0: none. group_s says which stretches are one group.
// An infinite norm gives 0, which makes NaN of what is infinite, and a NaN 1: either way the update flags it. The step
// block gets the norm of all as it was.
ST_KERNEL void clip_norm(i64 stretches, const i32 *group_s, const f64 *limit_s, f64 limit, const f64 *squares_s,
                         StepBlock *step, f32 *scale_s) {
    ST_ROWS(once, 1) {
        auto of_group = [&](i64 s) {
            f64 its = 0;
            for (i64 other = 0; other < stretches; ++other)
                if (group_s[other] == group_s[s]) its += squares_s[other];
            return shrinking(limit_s[s], its);
        };
        f64 all = 0, before = 0;
        for (i64 s = 0; s < stretches; ++s) all += of_group(s) * of_group(s) * squares_s[s];
        for (i64 s = 0; s < stretches; ++s) before += squares_s[s];
        ST_FIRST_LANE step->gradient_norm = sqrt(before);
        for (i64 s = 0; s < stretches; ++s) {
            f32 scale = f32(of_group(s) * shrinking(limit, all));
            ST_FIRST_LANE scale_s[s] = scale;
        }
    }
}
ST_EXPORT(clip_norm)

// Adds the norm of a step's gradient to this round's scores: gradient_2 = (norms, how many).
ST_KERNEL void score_gradient(StepBlock *step, f64 *gradient_2) {
    if (!(step->weight_sum > 0)) return;
    ST_FOR(once, 1) {
        gradient_2[0] += step->gradient_norm;
        gradient_2[1] += 1;
    }
}
ST_EXPORT(score_gradient)
