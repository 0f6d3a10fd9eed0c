"""Quality from score blocks: log_loss, auc, accuracy; or mae, rmse; the constant prediction's beside each."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from streamtrain.compute.ops.score_binary import MOMENTS
from streamtrain.compute.spec import Array

CONSTANT = "constant_"   # prefix of the constant prediction's figures
PLACE_ERROR = 1e-3       # of a place in a bin, from float32 logits


def summary(scores: Mapping[str, Array]) -> dict[str, float]:
    """Figures of score blocks as `Model.scores` gives them, of a snapshot or of the difference of two (a window).

    Binary: log_loss, auc, accuracy; classes: log_loss, accuracy; regression: mae, rmse; each also as constant_<name>.
    All are weighted; `rows` and `weight` are those they are of, rows of weight 0 left out. Without any weight only
    these two are there.
    """
    loss = scores["score.loss"].reshape(-1)
    weight = float(loss[1])
    figures: dict[str, float] = {"rows": int(scores["score.rows"].reshape(-1)[0]), "weight": weight}
    if weight <= 0:
        return figures
    if "score.errors" in scores:
        errors = scores["score.errors"].reshape(-1)
        linear, square, _, constant_linear, constant_square = (float(e) / weight for e in errors)
        return figures | {
            "mae": linear, "rmse": math.sqrt(square), CONSTANT + "mae": constant_linear,
            CONSTANT + "rmse": math.sqrt(constant_square),
        }
    right, constant_right = (float(hit) / weight for hit in scores["score.hits"].reshape(-1))
    figures |= {"log_loss": float(loss[0]) / weight, CONSTANT + "log_loss": float(loss[2]) / weight}
    figures |= {"accuracy": right, CONSTANT + "accuracy": constant_right}
    if "score.histogram" in scores:
        figures |= {"auc": auc(scores["score.histogram"].reshape(2, -1, MOMENTS)), CONSTANT + "auc": 0.5}
    return figures


def auc(histogram_lbm: Array) -> float:
    """Area under the ROC curve, from sums of weight, weight x and weight x^2 by label and bin of the logit, x the place
    in the bin. 0.5 if a label is missing; equal logits count half.

    At most 1e-3 off from base rates of 1e-5 on and logits that spread by 0.05 or more, over 100,000 rows (tested
    against scikit-learn).
    """
    weights = histogram_lbm[..., 0].astype(np.float64)
    negative, positive = weights
    pairs = negative.sum() * positive.sum()
    if pairs <= 0:
        return 0.5
    seen = np.where(weights > 0, weights, 1)
    mean, square = (np.where(weights > 0, histogram_lbm[..., power] / seen, 1 / (power + 1)) for power in (1, 2))
    below = np.cumsum(negative) - negative
    return float((positive * (below + negative * _lower(negative >= positive, mean, square))).sum() / pairs)


def _lower(heavier: Array, mean_lb: Array, square_lb: Array) -> Array:
    """By bin: the share of pairs within it in which the negative row lies lower. `heavier`: it holds more negative.

    Rows of the label with more weight are taken to lie as a density 1 + slope (x - 1/2) of their mean, where their
    variance is about that of one; else (a few rows, or equal ones) both labels as logistic distributions.
    """
    mean, square, other_mean, other_square = (
        np.asarray(np.where(heavier, one, other), np.float64)
        for one, other in (mean_lb, square_lb, mean_lb[::-1], square_lb[::-1])
    )
    variance, other_variance = square - mean**2, other_square - other_mean**2
    expected = 1 / 12 - (mean - 0.5) ** 2
    slope = 12 * (mean - 0.5)
    dense = other_mean + slope / 2 * (other_square - other_mean)
    spread = np.sqrt(np.maximum(variance + other_variance, PLACE_ERROR**2))
    apart = (other_mean - mean) / spread
    few = 1 / (1 + np.exp(-1.702 * np.where(abs(apart) < 1e-3, 0, apart).clip(-50, 50)))   # about the normal's
    lower = np.where((variance > 0.7 * expected) & (variance < 1.4 * expected), dense, few).clip(0, 1)
    return np.asarray(np.where(heavier, lower, 1 - lower))
