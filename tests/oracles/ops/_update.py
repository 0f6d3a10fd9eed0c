"""The common oracles of optimizers: over the flat vector of parameters, and over the touched rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from streamtrain.compute.optimizers import KEPT, SETTINGS
from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
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


def update(
    name: str, formula: Formula, state: tuple[str, ...], factors: Factors, of_rows: Formula | None = None
) -> dict[str, Oracle]:
    """The oracles of an optimizer with this formula. `factors`: values to try its numbers with; `of_rows`: the formula
    of a table's rows, where it is another."""
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

    return {
        name: Oracle(partial(_flat, formula), example),
        f"{name}_rows": Oracle(partial(_of_touched, of_rows or formula), example_rows),
    }
