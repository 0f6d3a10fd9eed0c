"""The oracles of losses over classes, counts and margins."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import oracle
from tests.oracles.ops._batch import share, step, weights


def binary_cross_entropy_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight, z = weights(rng, n), rng.normal(0, 5, n)
    z[weight == 0] = np.nan   # what a row of weight 0 holds does not matter
    return {"rows": n, "z": z, "label": rng.integers(0, 2, n), "weight": weight, "step": step(weight)}


@oracle(binary_cross_entropy_example)
def binary_cross_entropy(
    rows: int, z: Array, label: Array, weight: Array, step: Any, dz: Array, loss: Array, p: Array
) -> None:
    logit = z.astype(np.float64)
    probability = np.exp(-np.logaddexp(0, -logit))
    counts = weight > 0
    p[:] = probability
    loss[:] = np.where(counts, np.logaddexp(0, logit) - logit * label, 0)
    dz[:] = np.where(counts, weight * share(step) * (probability - label), 0)


def focal_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight, z = weights(rng, n), rng.normal(0, 5, n)
    z[weight == 0] = np.nan   # what a row of weight 0 holds does not matter
    return {
        "rows": n, "gamma": 2.0, "balance": 0.25, "z": z, "label": rng.integers(0, 2, n), "weight": weight,
        "step": step(weight),
    }


@oracle(focal_example)
def focal(
    rows: int, gamma: float, balance: float, z: Array, label: Array, weight: Array, step: Any, dz: Array, loss: Array
) -> None:
    counts, side = weight > 0, np.where(label >= 0.5, 1.0, -1.0)
    x = side * z.astype(np.float64)
    surprise, wrong = np.logaddexp(0, -x), np.exp(-np.logaddexp(0, x))
    factor = np.where(label >= 0.5, balance, 1 - balance) * wrong**gamma
    loss[:] = np.where(counts, factor * surprise, 0)
    slope = side * factor * (-gamma * (1 - wrong) * surprise - wrong)
    dz[:] = np.where(counts, weight * share(step) * slope, 0)


def hinge_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight = np.ceil(weights(rng, n))   # whole: classes may weigh the same
    return {
        "rows": n, "z": rng.normal(0, 2, n), "label": rng.integers(0, 2, n), "weight": weight, "step": step(weight),
        "base": [2.0, 3.0], "share": [2.0, n % 3],
    }


@oracle(hinge_example)
def hinge(rows: int, z: Array, label: Array, weight: Array, step: Any, dz: Array, loss: Array) -> None:
    counts, side = weight > 0, np.where(label >= 0.5, 1.0, -1.0)
    short = 1 - side * z
    loss[:] = np.where(counts, np.maximum(short, 0), 0)
    dz[:] = np.where(counts & (short > 0), -weight * share(step) * side, 0)


@oracle(hinge_example)
def running_margin(rows: int, label: Array, weight: Array, base: Array, share: Array, z: Array) -> None:
    w, is_one = np.where(weight > 0, weight, 0).astype(np.float64), label >= 0.5
    # as kernels add them: to what there was
    zero, one = (np.cumsum([base[at] + share[at], *added])[:-1] for at, added in enumerate((w * ~is_one, w * is_one)))
    z[:] = np.sign(one - zero)


LARGEST = 88.0   # log rate of a float32


def poisson_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight, z = weights(rng, n), rng.normal(0, 2, n)
    z[:1] = 100
    return {
        "rows": n, "n": n, "z": z, "label": rng.poisson(3, n), "weight": weight, "step": step(weight),
        "seen": [n, 2.0 * n],
    }


@oracle(poisson_example)
def poisson_rate(n: int, z: Array, p: Array) -> None:
    p[:] = np.exp(np.minimum(z.astype(np.float64), LARGEST))


@oracle(poisson_example)
def poisson(rows: int, z: Array, label: Array, weight: Array, step: Any, dz: Array, loss: Array, p: Array) -> None:
    counts, score = weight > 0, z.astype(np.float64)
    expected = np.exp(np.minimum(score, LARGEST))
    p[:] = expected
    count = label.astype(np.float64)
    own = np.where(count > 0, count * (np.log(np.where(count > 0, count, 1)) - score), 0)
    loss[:] = np.where(counts, expected - count + own, 0)
    dz[:] = np.where(counts, weight * share(step) * (expected - label), 0)


@oracle(poisson_example)
def poisson_prior(seen: Array, offset: Array) -> None:
    offset[:] = np.log((seen[1] + 0.5) / (seen[0] + 0.5))


@oracle(poisson_example, 1e-12)
def poisson_seen(rows: int, label: Array, weight: Array, seen: Array) -> None:
    w = np.where(weight > 0, weight, 0).astype(np.float64)
    seen += [w.sum(), (w * label).sum()]


def probabilities(z: Array) -> Array:
    """Row by row, in float64."""
    power = np.exp(z.astype(np.float64) - z.max(1, keepdims=True))
    return np.asarray(power / power.sum(1, keepdims=True))


def softmax_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    classes = 2 + n % 70
    return {"rows": n, "classes": classes, "z": rng.normal(0, 5, (n, classes))}


@oracle(softmax_example)
def softmax(rows: int, classes: int, z: Array, p: Array) -> None:
    p[:] = probabilities(z)


def softmax_cross_entropy_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    classes, weight = 2 + n % 70, weights(rng, n)
    return {
        "rows": n, "classes": classes, "z": rng.normal(0, 5, (n, classes)), "label": rng.integers(-1, classes + 1, n),
        "weight": weight, "step": step(weight),
    }


@oracle(softmax_cross_entropy_example)
def softmax_cross_entropy(
    rows: int, classes: int, z: Array, label: Array, weight: Array, step: Any, dz: Array, loss: Array, p: Array,
    rank: Array,
) -> None:
    probability, counts, every = probabilities(z), weight > 0, np.arange(rows)
    index = np.where((label >= 0) & (label < classes), label, 0)
    target = np.zeros((rows, classes))
    target[every, index] = 1
    logit = z.astype(np.float64)
    p[:] = probability
    rounded = probability.astype(np.float32)
    at_label = rounded[every, index][:, None]
    rank[:] = ((rounded > at_label) | ((rounded == at_label) & (np.arange(classes) < index[:, None]))).sum(1)
    largest = logit.max(1)
    log_total = np.log(np.exp(logit - largest[:, None]).sum(1))
    loss[:] = np.where(counts, log_total - (logit[every, index] - largest), 0)
    dz[:] = np.where(counts[:, None], (weight * share(step))[:, None] * (probability - target), 0)


def binary_objective_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weight = weights(rng, n)
    return {
        "rows": n, "smoothing": 0.1, "z": rng.normal(0, 3, n), "p": rng.random(n), "plain": rng.random(n),
        "label": rng.integers(0, 2, n), "weight": weight, "class_weight": [0.5, 3.0], "step": step(weight),
    }


@oracle(binary_objective_example)
def binary_objective(
    rows: int, smoothing: float, z: Array, p: Array, plain: Array, label: Array, weight: Array, class_weight: Array,
    step: Any, dz: Array, loss: Array,
) -> None:
    counts, factor = weight > 0, class_weight[(label >= 0.5).astype(np.int64)].astype(np.float64)
    moved = smoothing * (label - 0.5)
    loss[:] = np.where(counts, factor * (plain + z.astype(np.float64) * moved), 0)
    dz[:] = np.where(counts, weight * share(step) * factor * (p - (label - moved)), 0)


def class_objective_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    classes, weight = 2 + n % 70, weights(rng, n)
    return {
        "rows": n, "classes": classes, "smoothing": 0.1, "z": rng.normal(0, 3, (n, classes)),
        "p": rng.random((n, classes)), "plain": rng.random(n), "label": rng.integers(-1, classes + 1, n),
        "weight": weight, "class_weight": rng.uniform(0.5, 3, classes), "step": step(weight),
    }


@oracle(class_objective_example)
def class_objective(
    rows: int, classes: int, smoothing: float, z: Array, p: Array, plain: Array, label: Array, weight: Array,
    class_weight: Array, step: Any, dz: Array, loss: Array,
) -> None:
    counts, every, score = weight > 0, np.arange(rows), z.astype(np.float64)
    index = np.where((label >= 0) & (label < classes), label, 0)
    factor = class_weight[index].astype(np.float64)
    target = np.full((rows, classes), smoothing / classes)
    target[every, index] += 1 - smoothing
    loss[:] = np.where(counts, factor * (plain + smoothing * (score[every, index] - score.mean(1))), 0)
    dz[:] = np.where(counts[:, None], (weight * share(step) * factor)[:, None] * (p - target), 0)
