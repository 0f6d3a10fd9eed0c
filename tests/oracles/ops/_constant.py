"""The constant prediction over classes, row by row: each is scored before it is counted."""

from __future__ import annotations

import numpy as np

from streamtrain.compute.spec import Array

PRIOR = 0.5   # of a row, added to each class (Krichevsky and Trofimov, 1981)


def score_constant(base: Array, share: Array, labels: Array, weights: Array) -> tuple[float, float]:
    """Loss and weight of the rows whose class led, of rows of weight > 0; their weights are added to `share`."""
    loss = right = 0.0
    for label, weight in zip(labels, weights.astype(np.float64), strict=True):
        seen = base + share
        loss -= weight * np.log((seen[label] + PRIOR) / (seen.sum() + PRIOR * len(seen)))
        right += weight * (seen.argmax() == label)
        share[label] += weight
    return float(loss), float(right)
