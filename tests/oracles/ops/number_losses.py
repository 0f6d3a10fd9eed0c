"""The oracles of losses of a number."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle, enter, oracle
from tests.oracles.ops._batch import share, step, weights

Formula = Callable[..., tuple[Array, Array]]


def number(**settings: float) -> Callable[[Formula], Formula]:
    """Enters the oracle of a loss: the decorated formula gives loss and slope, each [rows], of the errors [rows] and
    the settings; these with values to try."""

    def reference(formula: Formula, rows: int, *given: Any) -> None:
        values, (z, label, weight, mean, scale, step_block, dz, loss, p) = given[:-9], given[-9:]
        counts = weight > 0
        each, slope = formula((z - (label - mean[0]) * scale[0]).astype(np.float64), *values)
        p[:] = z / scale[0] + mean[0]
        loss[:] = np.where(counts, each, 0)
        dz[:] = np.where(counts, weight * share(step_block) * slope, 0)

    def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
        weight, z = weights(rng, n), rng.normal(0, 3, n)
        z[weight == 0] = np.nan   # what a row of weight 0 holds does not matter
        return {
            "rows": n, **settings, "z": z, "label": rng.normal(40, 10, n), "weight": weight, "mean": [41.0],
            "scale": [0.1], "step": step(weight),
        }

    def add(formula: Formula) -> Formula:
        enter(formula.__name__, Oracle(partial(reference, formula), example))
        return formula

    return add


@number()
def mean_squared_error(error: Array) -> tuple[Array, Array]:
    return error * error, 2 * error


@number()
def mean_absolute_error(error: Array) -> tuple[Array, Array]:
    return abs(error), np.sign(error)


@number(delta=0.75)
def huber(error: Array, delta: float) -> tuple[Array, Array]:
    near = np.minimum(abs(error), delta)
    return near * (abs(error) - near / 2), np.copysign(near, error)


@number()
def log_cosh(error: Array) -> tuple[Array, Array]:
    return np.logaddexp(error, -error) - np.log(2), np.tanh(error)


@number(at=0.8)
def quantile(error: Array, at: float) -> tuple[Array, Array]:
    slope = np.where(error < 0, -at, np.where(error > 0, 1 - at, 0))
    return slope * error, slope


def unstandardize_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"n": n, "z": rng.normal(size=n), "mean": [41.0], "scale": [0.1]}


@oracle(unstandardize_example)
def unstandardize(n: int, z: Array, mean: Array, scale: Array, p: Array) -> None:
    p[:] = z / scale[0] + mean[0]
