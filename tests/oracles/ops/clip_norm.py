"""The oracle of compute/ops/clip_norm.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import step as step_of
from tests.oracles.ops._touched import example_touched, leaders_of
from tests.oracles.ops.embedding import by_table


def squares(n: int, stretches: int, columns: int, settings: Array, g: Array, found: Array) -> None:
    first = 0
    for at in range(stretches):
        end = int(settings[at, 0])
        found[at] = (g[first:end].astype(np.float64) ** 2).sum()
        first = end


def squares_rows(
    rows: int, entries: int, tables: int, total: int, places: Array, ends: Array | None, lead: Array, g: Array,
    found: Array,
) -> None:
    for table, (_, gradient, its) in enumerate(by_table(places, lead, g)):
        leading = gradient[leaders_of(rows, ends, its)].astype(np.float32)
        found[table] = (leading.astype(np.float64) ** 2).sum()


def reference(
    stretches: int, group: Array, limits: Array, limit: float, squares: Array, step: Any, scale: Array
) -> None:
    def shrinking(limit: Array, squares: Array) -> Array:
        with np.errstate(all="ignore"):
            norm = np.sqrt(squares)
            return np.where((limit > 0) & (norm > limit), limit / norm, 1.0)

    its = np.array([squares[group == each].sum() for each in group])
    first = shrinking(limits, its)
    scale[:] = first * shrinking(np.array(limit), np.array((first**2 * squares).sum()))
    step.gradient_norm = float(np.sqrt(squares.sum()))


def score(step: Any, gradient: Array) -> None:
    if step.weight_sum > 0:
        gradient += [step.gradient_norm, 1]


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"n": n, "stretches": 2, "columns": 3, "settings": [[n // 3, 9, 9], [n, 9, 9]], "g": rng.normal(size=n)}


def example_clip(rng: np.random.Generator, n: int) -> dict[str, Any]:
    count = n % 40
    group = rng.integers(0, 4, count)
    return {"stretches": count, "group": group, "limits": rng.choice([0.0, 2.0], 4)[group],
            "limit": 3.0 * (n % 2), "squares": rng.random(count) * 9, "step": step_of()}  # fmt: skip


def example_score(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"step": step_of(gradient_norm=2.5, weight_sum=float(n % 2)), "gradient": [1.0, 2.0]}


ORACLES = {
    "gradient_squares": Oracle(squares, example),
    "gradient_squares_rows": Oracle(squares_rows, example_touched),
    "clip_norm": Oracle(reference, example_clip),
    "score_gradient": Oracle(score, example_score),
}
