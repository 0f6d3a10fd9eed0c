"""Figures from the weight of rows by label and predicted class: of each class, and the mean over classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array

MATRIX = "confusion_matrix"   # among a window's figures: a row for each label, of weights by predicted class
FIGURES = ("precision", "recall", "f1")
MACRO = tuple(f"macro_{name}" for name in FIGURES)


def by_class(matrix: Any) -> list[dict[str, float]]:
    """Returns for each class the weight of its rows, precision, recall and F1. A figure is 0 where no row is
    predicted as the class or belongs to it."""
    weights = np.asarray(matrix, np.float64)
    right, predicted_weights, there = np.diag(weights), weights.sum(0), weights.sum(1)
    parts = (_share(right, predicted_weights), _share(right, there), _share(2 * right, predicted_weights + there))
    return [dict(zip(("weight", *FIGURES), each, strict=True))
            for each in zip(there.tolist(), *(part.tolist() for part in parts), strict=True)]  # fmt: skip


def of_the_positive(matrix: Array) -> dict[str, Any]:
    """Returns precision, recall and F1 of the second of two classes, and the matrix."""
    positive = by_class(matrix)[1]
    return {**{name: positive[name] for name in FIGURES}, MATRIX: matrix.tolist()}


def macro(matrix: Array) -> dict[str, Any]:
    """The means over the classes that are predicted or present, and the matrix."""
    seen = matrix.sum(0) + matrix.sum(1) > 0
    each = [figures for figures, is_seen in zip(by_class(matrix), seen, strict=True) if is_seen]
    means = {f"macro_{name}": float(np.mean([figures[name] for figures in each])) for name in FIGURES} if each else {}
    return {**means, MATRIX: matrix.tolist()}


def _share(part: Array, whole: Array) -> Array:
    return np.asarray(part / np.where(whole > 0, whole, 1))
