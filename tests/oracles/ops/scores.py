"""The oracles of the ops that score a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops.score_binary import _BEYOND, _EVEN, _OF_ONE, _REACH, BINS, MOMENTS
from streamtrain.compute.spec import Array
from tests.oracles.ops import oracle
from tests.oracles.ops._batch import step, weights

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


def place(z: Array) -> tuple[Array, Array]:
    """Bin of each logit, and the place in it. In float32, as the kernel has it."""
    reach, even, beyond, of_one = (np.float32(each) for each in (_REACH, _EVEN, _BEYOND, _OF_ONE))
    with np.errstate(all="ignore"):
        away = abs(z.astype(np.float32))
        folded = np.where(away <= even, away, reach - beyond * beyond / (away - (even - beyond)))
        at = np.nan_to_num(np.maximum((np.copysign(folded, z).astype(np.float32) + reach) * of_one, 0))
    bins = np.minimum(at, BINS - 1).astype(np.int64)
    return bins, np.minimum(at - bins.astype(np.float32), np.float32(1))


def score_binary_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight = weights(rng, n)
    if n % 2:   # rows of weight 1 under a class that leads are scored together
        weight = np.ceil(weight).clip(0, 1)
    return {
        "rows": n, "z": rng.normal(0, 8, n), "loss": rng.random(n), "label": rng.integers(0, 2, n), "weight": weight,
        "base_classes": [20.0 + 1000 * (n % 3 == 1), 7.0], "step": step(weight), "share_loss": [1.0, 2.0, 3.0, 4.0],
        "share_classes": [3.0, 2.0], "hits": [5.0, 6.0], "count": [7], "histogram": np.zeros((2, BINS, MOMENTS)),
    }


@oracle(score_binary_example, 1e-12)
def score_binary(
    rows: int, z: Array, loss: Array, label: Array, weight: Array, base_classes: Array, step: Any, share_loss: Array,
    share_classes: Array, hits: Array, count: Array, histogram: Array,
) -> None:
    counts = weight > 0
    w, y, q = weight[counts].astype(np.float64), (label[counts] >= 0.5).astype(np.int64), z[counts]
    total = float((w * loss[counts]).sum())
    constant_loss, constant_right = score_constant(base_classes, share_classes, y, w)
    share_loss += [total, w.sum(), constant_loss, 0]
    hits += [(w * ((q >= 0) == y)).sum(), constant_right]
    count += step.active_rows
    bins, x = place(q)
    for power in range(MOMENTS):
        np.add.at(histogram[..., power], (y, bins), w * x.astype(np.float64) ** power)
    step.loss_sum = step.objective_sum = total
    step.not_finite |= int(not np.isfinite(total))


def score_classes_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    classes, weight = 2 + n % 9, weights(rng, n)
    return {
        "rows": n, "classes": classes, "rank": rng.integers(0, 2, n), "loss": rng.random(n),
        "label": rng.integers(-1, classes + 1, n), "weight": weight, "base_classes": rng.integers(0, 9, classes),
        "step": step(weight), "share_loss": [1.0, 2.0, 3.0, 4.0], "share_classes": np.ones(classes), "hits": [5.0, 6.0],
        "count": [7],
    }


@oracle(score_classes_example, 1e-12)
def score_classes(
    rows: int, classes: int, rank: Array, loss: Array, label: Array, weight: Array, base_classes: Array, step: Any,
    share_loss: Array, share_classes: Array, hits: Array, count: Array,
) -> None:
    counts = weight > 0
    index = np.where((label >= 0) & (label < classes), label, 0)[counts]
    w = weight[counts].astype(np.float64)
    total = float((w * loss[counts]).sum())
    constant_loss, constant_right = score_constant(base_classes, share_classes, index, w)
    share_loss += [total, w.sum(), constant_loss, 0]
    hits += [(w * (rank[counts] == 0)).sum(), constant_right]
    count += step.active_rows
    step.loss_sum = step.objective_sum = total
    step.not_finite |= int(not np.isfinite(total))


def score_confusion_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    classes, weight = 2 + n % 9, weights(rng, n)
    pair = np.where(weight > 0, rng.integers(0, classes**2, n), -1)
    return {
        "rows": n, "classes": classes, "cells": classes**2, "p": rng.integers(0, 5, (n, classes)),   # some are equal
        "rank": rng.integers(0, 2, n), "label": rng.integers(-1, classes + 1, n), "weight": weight, "pair": pair,
        "confusion": rng.integers(0, 9, classes**2),
    }


@oracle(score_confusion_example)
def class_pair(
    rows: int, classes: int, p: Array, rank: Array, label: Array, weight: Array, pair: Array
) -> None:
    index = np.where((label >= 0) & (label < classes), label, 0)
    pair[:] = np.where(weight > 0, index * classes + np.where(rank == 0, index, p.argmax(1)), -1)


@oracle(score_confusion_example, 1e-12)
def score_confusion(rows: int, cells: int, pair: Array, weight: Array, confusion: Array) -> None:
    found = (pair >= 0) & (pair < cells)
    np.add.at(confusion, pair[found], weight[found].astype(np.float64))


def score_number_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight = weights(rng, n)
    return {
        "rows": n, "degree": 2.0, "scale": [0.5], "p": rng.normal(size=n), "loss": rng.random(n),
        "constant": rng.normal(size=n), "constant_loss": rng.random(n), "label": rng.normal(size=n),
        "weight": weight, "step": step(weight), "share_loss": [1.0, 2.0, 3.0, 4.0],
        "errors": [1.0, 2.0, 3.0, 4.0, 5.0], "count": [7],
    }


@oracle(score_number_example, 1e-12)
def score_number(
    rows: int, degree: float, scale: Array, p: Array, loss: Array, constant: Array, constant_loss: Array, label: Array,
    weight: Array, step: Any, share_loss: Array, errors: Array, count: Array,
) -> None:
    counts = weight > 0
    w, y, q, c = (a[counts].astype(np.float64) for a in (weight, label, p, constant))
    total, of_constant = (float((w * each[counts]).sum()) for each in (loss, constant_loss))
    unit = float(scale[0]) ** -degree
    share_loss += [unit * total, w.sum(), unit * of_constant, (w * y).sum()]
    linear, square = ([(w * abs(each - y) ** power).sum() for each in (q, c)] for power in (1, 2))
    errors += [linear[0], square[0], (w * y * y).sum(), linear[1], square[1]]
    count += step.active_rows
    step.loss_sum, step.objective_sum = unit * total, total
    step.not_finite |= int(not np.isfinite(total))


def score_objective_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight = weights(rng, n)
    return {
        "rows": n, "loss": rng.random(n), "constant_loss": rng.random(n), "weight": weight, "step": step(weight),
        "objective": [1.0, 2.0],
    }


@oracle(score_objective_example, 1e-12)
def score_objective(
    rows: int, loss: Array, constant_loss: Array, weight: Array, step: Any, objective: Array
) -> None:
    counts = weight > 0
    w = weight[counts].astype(np.float64)
    total, of_constant = (float((w * each[counts]).sum()) for each in (loss, constant_loss))
    objective += [total, of_constant]
    step.loss_sum = step.objective_sum = total
    step.not_finite |= int(not np.isfinite(total))


def score_top_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    count = 1 + n % 3
    return {"rows": n, "count": count, "rank": rng.integers(0, 9, n), "weight": weights(rng, n),
            "most": np.array([2, 5, 8])[:count], "top": np.arange(count)}


@oracle(score_top_example, 1e-12)
def score_top(rows: int, count: int, rank: Array, weight: Array, most: Array, top: Array) -> None:
    w = np.maximum(weight, 0).astype(np.float64)
    top += ((rank[:, None] < most) * w[:, None]).sum(0)
