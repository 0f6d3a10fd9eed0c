// plateau -- what a schedule keeps that lowers the learning rate where the loss stops improving: once so many rows have
// been scored since the last evaluation, their mean loss is held against the best. It goes by the scores of the mean,
// at the end of a round, so that the next round's rate is told by its start.
#pragma once
#include <algorithm>
#include <cmath>

#include "state/parts.h"

namespace st::rules {

struct Plateau {
    f64 left;                       // of the rate
    f64 best, since, evaluations;   // since: evaluations in a row that were no better than `best`
    f64 loss, weight, rows;         // the score blocks at the last evaluation
    f64 every, patience, threshold, factor, least;   // settings: rows, evaluations, shares
};
constexpr u64 PLATEAU_WIDTH = sizeof(Plateau) / sizeof(f64);

inline void evaluate(Plateau &now, f64 score) {
    now.evaluations += 1;
    if (now.evaluations == 1 || score < now.best * (1 - now.threshold)) {
        now.best = score;
        now.since = 0;
    } else if (++now.since >= now.patience) {
        now.left = std::max(now.left * now.factor, std::min(now.left, now.least));
        now.since = 0;
    }
}

// Of what is minimised, where that is not the loss that all such models have.
inline void settle_plateau(const StateLayout &layout, const StateBlock &block, const RoundStart &, f64, u8 *mean) {
    const StateBlock *scores = layout.find(SCORE_LOSS), *counts = layout.find(SCORE_ROWS);
    const StateBlock *minimised = layout.find(SCORE_OBJECTIVE);
    if (!scores || !counts || block.count() != PLATEAU_WIDTH) return;
    auto number = [mean](const StateBlock &its, u64 at) {
        return reinterpret_cast<const f64 *>(mean + its.offset)[at];
    };
    const f64 loss = number(minimised ? *minimised : *scores, 0), weight = number(*scores, 1);
    const f64 rows = static_cast<f64>(*reinterpret_cast<const i64 *>(mean + counts->offset));
    Plateau &now = *reinterpret_cast<Plateau *>(mean + block.offset);
    if (rows - now.rows < now.every) return;
    const f64 score = (loss - now.loss) / (weight - now.weight);
    if (weight > now.weight && std::isfinite(score)) evaluate(now, score);
    now.loss = loss;
    now.weight = weight;
    now.rows = rows;
}

constexpr Rule plateau{Dtype::f64, Part::statistics, false, parts::gathered_from_zero,
                       parts::as_stepped, parts::left_alone, parts::as_started, parts::whole, nullptr, settle_plateau};

}  // namespace st::rules
