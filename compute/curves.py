"""Figures of a binary model from the histogram of its logits: at one threshold, and along all of them."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.ops.score_binary import BINS, middle
from streamtrain.compute.spec import Array

PARTS = 10   # of probability, for the error of calibration


def at_half(weights_lb: Array) -> Array:
    """Weight by label and prediction, 1 for rows whose logit is 0 or more: [2, 2]."""
    return np.add.reduceat(weights_lb, [0, BINS // 2], axis=1)


def average_precision(weights_lb: Array) -> float:
    """The mean of precision over recall, a threshold a bin: the area that scikit-learn's average_precision_score has,
    rows of one bin (1/48 of a logit) taken as equal. The share of the positive weight where that is 0 or all."""
    negative, positive = weights_lb[:, ::-1]
    there = positive.sum()
    if not there > 0:
        return 0.0
    true, predicted_weight = np.cumsum(positive), np.cumsum(positive + negative)
    return float((positive * true / np.where(predicted_weight > 0, predicted_weight, 1)).sum() / there)


def calibration(histogram_lbm: Array) -> dict[str, float]:
    """`calibration`: the mean prediction over the share of positive labels, 1 at best; `calibration_error`: how far the
    two lie apart, by tenths of probability (Naeini, Cooper, Hauskrecht: Obtaining well calibrated probabilities, 2015).
    A row's probability is that of its bin's mean logit."""
    weights = histogram_lbm[..., 0]
    total, positive = weights.sum(0), weights[1]
    seen = np.where(total > 0, total, 1)
    with np.errstate(over="ignore"):
        p = 1 / (1 + np.exp(-middle(histogram_lbm[..., 1].sum(0) / seen)))
    part = np.minimum((p * PARTS).astype(np.int64), PARTS - 1)
    predicted_sums, there = (np.bincount(part, weights=each, minlength=PARTS) for each in (total * p, positive))
    all_there, predicted_total = float(there.sum()), float(predicted_sums.sum())
    figures = {"calibration_error": float(abs(predicted_sums - there).sum() / total.sum()) if total.sum() > 0 else 0.0}
    return figures | ({"calibration": predicted_total / all_there} if all_there > 0 else {})
