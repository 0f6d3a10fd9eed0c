"""The oracles of optimizers: over the flat vector of parameters, and over the touched rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from streamtrain.compute.optimizers import KEPT, SETTINGS
from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle, enter
from tests.oracles.ops._batch import step
from tests.oracles.ops._touched import example_touched, touched

# new parameter and new state from (rate, number of the step, gradient, parameter, state..., factors...)
Formula = Callable[..., tuple[Array, ...]]
Factors = Mapping[str, float]


def _shaped(settings: Sequence[float], scale: float, rate: float, g: Array, p: Array) -> tuple[Array, Array]:
    """The gradient that a formula sees, and the parameter it changes."""
    _, _, l1, l2, decay, clip = settings[: len(SETTINGS)]
    g = g * scale
    if clip > 0:
        g = np.clip(g, -clip, clip)
    return g + l1 * np.sign(p) + l2 * p, p - rate * decay * p


def _updated(
    formula: Formula, settings: Array, scale: float, step: Any, g: Array, arrays: Sequence[Array]
) -> list[Array]:
    """Returns the new parameter and optimizer state. Flags in the step what is not finite."""
    numbers = settings.tolist()   # those of Python leave an array's dtype as it is
    rate = step.learning_rate * numbers[1]
    with np.errstate(all="ignore"):
        g, p = _shaped(numbers, scale, rate, g, arrays[0])
        after = formula(rate, step.number, g, p, *arrays[1:], *numbers[len(SETTINGS) :])
    step.not_finite |= int(not all(np.isfinite(a).all() for a in after))
    return list(after)


def _flat(
    formula: Formula, n: int, stretches: int, step: Any, settings: Array, scale: Array | None, g: Array,
    *rest: Array | None,
) -> None:
    """The reference of a kernel over the flat vector."""
    arrays, first = [array for array in rest if array is not None], 0
    for at, its in enumerate(settings if step.weight_sum > 0 else ()):
        end = int(its[0])
        part = [kept[first:end] for kept in arrays]
        after = _updated(formula, its, 1.0 if scale is None else float(scale[at]), step, g[first:end], part)
        for kept, fresh in zip(part, after, strict=True):
            kept[:] = fresh
        first = end


def _of_touched(
    formula: Formula, rows: int, entries: int, columns: int, tables: int, total: int, step: Any, settings: Array,
    scale: Array | None, places: Array, ends: Array | None, categories: Array, lead: Array, g: Array,
    *rest: Sequence[Array] | None,
) -> None:
    """The reference of a kernel over the touched rows of tables."""
    kept = [arrays for arrays in rest if arrays is not None]
    if not step.weight_sum > 0:
        return
    for table, (leaders, at, its_g) in enumerate(touched(rows, places, ends, categories, lead, g)):
        blocks = [arrays[table] for arrays in kept]
        its, factor = [array[at] for array in blocks], 1.0 if scale is None else float(scale[table])
        for array, fresh in zip(blocks, _updated(formula, settings[0], factor, step, its_g[leaders], its), strict=True):
            array[at] = fresh


def _settings(rng: np.random.Generator, ends: Sequence[int], factors: Factors) -> Array:
    """Returns settings to try an update with: every second stretch is plain."""
    rows = [[end, 1.0, 0, 0, 0, 0] if at % 2 else [end, 0.5, 0.01, 0.1, 0.2, 0.7] for at, end in enumerate(ends)]
    return np.array([[*row, *factors.values()] for row in rows])


def update(*state: str, of_rows: Formula | None = None, **factors: float) -> Callable[[Formula], Formula]:
    """Enters the oracles of an optimizer with the decorated formula. `factors`: values to try its numbers with;
    `of_rows`: the formula of a table's rows, where it is another."""
    kept = KEPT[: len(state)]

    def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
        optimizer_state = {each: abs(rng.normal(size=n)) for each in kept}
        settings, scale = _settings(rng, [n // 3, n // 2, n], factors), {"scale": [0.5, 1.0, 0.25]} if n % 2 else {}
        batch = {"n": n, "stretches": 3, "step": step(), "settings": settings, **scale}
        return {**batch, "g": rng.normal(size=n), "p": rng.normal(size=n), **optimizer_state}

    def example_rows(rng: np.random.Generator, n: int) -> dict[str, Any]:
        batch = example_touched(rng, n)
        table_arrays = {name: [abs(rng.normal(size=table.shape)) for table in batch["table"]] for name in ("p", *kept)}
        scale = {"scale": rng.random(batch["tables"])} if n % 3 else {}
        return {**batch, "step": step(), "settings": _settings(rng, [0], factors), **scale, **table_arrays}

    def add(formula: Formula) -> Formula:
        enter(formula.__name__, Oracle(partial(_flat, formula), example))
        enter(f"{formula.__name__}_rows", Oracle(partial(_of_touched, of_rows or formula), example_rows))
        return formula

    return add


@update()
def sgd(rate: float, number: int, g: Array, p: Array) -> tuple[Array, ...]:
    return (p - rate * g,)


@update("u", momentum=0.9)
def momentum(rate: float, number: int, g: Array, p: Array, u: Array, momentum: float) -> tuple[Array, ...]:
    speed = momentum * u + g
    return p - rate * speed, speed


@update("u", momentum=0.9)
def nesterov(rate: float, number: int, g: Array, p: Array, u: Array, momentum: float) -> tuple[Array, ...]:
    speed = momentum * u + g
    return p - rate * (g + momentum * speed), speed


@update("n", initial=0.1, epsilon=1e-10)
def adagrad(
    rate: float, number: int, g: Array, p: Array, n: Array, initial: float, epsilon: float
) -> tuple[Array, ...]:
    total = n + g * g
    return p - rate * g / (np.sqrt(total + initial) + epsilon), total


@update("v", "u", rho=0.9, epsilon=1e-06)
def adadelta(
    rate: float, number: int, g: Array, p: Array, v: Array, u: Array, rho: float, epsilon: float
) -> tuple[Array, ...]:
    second = rho * v + (1 - rho) * g * g
    way = g * np.sqrt(u + epsilon) / np.sqrt(second + epsilon)
    return p - rate * way, second, rho * u + (1 - rho) * way * way


@update("v", alpha=0.99, epsilon=1e-08)
def rmsprop(rate: float, number: int, g: Array, p: Array, v: Array, alpha: float, epsilon: float) -> tuple[Array, ...]:
    second = alpha * v + (1 - alpha) * g * g
    return p - rate * g / (np.sqrt(second) + epsilon), second


def moments(g: Array, m: Array, v: Array, beta1: float, beta2: float) -> tuple[Array, Array]:
    return beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g


@update("m", "v", beta1=0.9, beta2=0.999, epsilon=1e-08)
def adam(
    rate: float, number: int, g: Array, p: Array, m: Array, v: Array, beta1: float, beta2: float, epsilon: float
) -> tuple[Array, ...]:
    first, second = moments(g, m, v, beta1, beta2)
    ahead, spread = first / (1 - beta1**number), second / (1 - beta2**number)
    return p - rate * ahead / (np.sqrt(spread) + epsilon), first, second


@update("m", "u", beta1=0.9, beta2=0.999, epsilon=1e-08)
def adamax(
    rate: float, number: int, g: Array, p: Array, m: Array, u: Array, beta1: float, beta2: float, epsilon: float
) -> tuple[Array, ...]:
    first = beta1 * m + (1 - beta1) * g
    most = np.maximum(beta2 * u, abs(g) + epsilon)
    return p - rate / (1 - beta1**number) * first / most, first, most


@update("m", "v", "most", beta1=0.9, beta2=0.999, epsilon=1e-08)
def amsgrad(
    rate: float, number: int, g: Array, p: Array, m: Array, v: Array, most: Array,
    beta1: float, beta2: float, epsilon: float
) -> tuple[Array, ...]:
    first, second = moments(g, m, v, beta1, beta2)
    largest = np.maximum(most, second)
    ahead, spread = first / (1 - beta1**number), largest / (1 - beta2**number)
    return p - rate * ahead / (np.sqrt(spread) + epsilon), first, second, largest


@update("m", "v", beta1=0.9, beta2=0.999, epsilon=1e-8, slowing=0.96**0.004)
def nadam(
    rate: float, number: int, g: Array, p: Array, m: Array, v: Array, beta1: float,
    beta2: float, epsilon: float, slowing: float
) -> tuple[Array, ...]:
    mu = [beta1 * (1 - 0.5 * slowing**t) for t in range(1, number + 2)]
    product = float(np.prod(mu[:-1]))
    first, second = moments(g, m, v, beta1, beta2)
    ahead = (1 - mu[-2]) * g / (1 - product) + mu[-1] * first / (1 - product * mu[-1])
    return p - rate * ahead / (np.sqrt(second / (1 - beta2**number)) + epsilon), first, second


def _direction(
    number: int, g: Array, p: Array, m: Array, v: Array, beta1: float, beta2: float, epsilon: float, decay: float
) -> tuple[Array, Array, Array]:
    first, second = moments(g, m, v, beta1, beta2)
    ahead, spread = first / (1 - beta1**number), second / (1 - beta2**number)
    return ahead / (np.sqrt(spread) + epsilon) + decay * p, first, second


def lamb_rows(rate: float, number: int, g: Array, p: Array, *rest: Any) -> tuple[Array, ...]:
    """Returns the updated rows of a table, whose norm no step knows."""
    way, first, second = _direction(number, g, p, *rest)
    return p - rate * way, first, second


@update("m", "v", of_rows=lamb_rows, beta1=0.9, beta2=0.999, epsilon=1e-6, decay=0.01)
def lamb(rate: float, number: int, g: Array, p: Array, *rest: Any) -> tuple[Array, ...]:
    way, first, second = _direction(number, g, p, *rest)
    size, length = np.linalg.norm(p), np.linalg.norm(way)
    ratio = size / length if size > 0 and length > 0 else 1.0
    return p - rate * ratio * way, first, second


@update("m", beta1=0.9, beta2=0.99)
def lion(rate: float, number: int, g: Array, p: Array, m: Array, beta1: float, beta2: float) -> tuple[Array, ...]:
    ahead = beta1 * m + (1 - beta1) * g
    return p - rate * np.sign(ahead), beta2 * m + (1 - beta2) * g


@update("z", "n", beta=1.0, l1=0.05, l2=0.1)
def ftrl(
    rate: float, number: int, g: Array, p: Array, z: Array, n: Array, beta: float, l1: float, l2: float
) -> tuple[Array, ...]:
    begun = np.where(n == 0, -(p * (beta / rate + l2) + l1 * np.sign(p)), z)
    total = n + g * g
    leader = begun + g - (np.sqrt(total) - np.sqrt(n)) / rate * p
    beyond = np.sign(leader) * np.maximum(abs(leader) - l1, 0)
    return -beyond / ((beta + np.sqrt(total)) / rate + l2), leader, total
