"""Quality from score blocks: log_loss, auc, accuracy; or mae, rmse; the constant prediction's beside each."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from streamtrain.compute.spec import Array

CONSTANT = "constant_"   # prefix of the constant prediction's figures


def summary(scores: Mapping[str, Array]) -> dict[str, float]:
    """Figures of score blocks as `Model.scores` gives them, of a snapshot or of the difference of two (a window).

    Binary: log_loss, auc, accuracy; classes: log_loss, accuracy; regression: mae, rmse; each also as constant_<name>,
    and `weight`, the weight sum they are of. Without any weight only weight = 0 is there.
    """
    loss = scores["score.loss"]
    weight = float(loss[1])
    figures: dict[str, float] = {"weight": weight}
    if weight <= 0:
        return figures
    if "score.errors" in scores:
        linear, square, _, constant_linear, constant_square = (float(e) / weight for e in scores["score.errors"])
        return figures | {
            "mae": linear, "rmse": math.sqrt(square), CONSTANT + "mae": constant_linear,
            CONSTANT + "rmse": math.sqrt(constant_square),
        }
    correct, rows = (int(hit) for hit in scores["score.hits"])
    figures |= {"log_loss": float(loss[0]) / weight, CONSTANT + "log_loss": float(loss[2]) / weight}
    figures["accuracy"] = correct / rows if rows else 0.0
    if "score.histogram" in scores:
        histogram = scores["score.histogram"]
        figures["auc"] = auc(histogram)
        figures[CONSTANT + "auc"] = 0.5
        figures[CONSTANT + "accuracy"] = int(histogram.sum(1).max()) / rows if rows else 0.0
    else:
        figures[CONSTANT + "accuracy"] = float(scores["score.classes"].max()) / weight
    return figures


def auc(histogram: Array) -> float:
    """Area under the ROC curve of counts [label, bin of the prediction]; ties within a bin count half. 0.5 if a label
    is missing."""
    negative, positive = histogram.astype(np.float64)
    pairs = negative.sum() * positive.sum()
    if pairs == 0:
        return 0.5
    below = np.concatenate(([0.0], np.cumsum(negative)[:-1]))
    return float((positive * (below + negative / 2)).sum() / pairs)
