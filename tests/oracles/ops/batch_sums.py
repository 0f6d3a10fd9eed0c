"""The oracles of sums over a batch: of weights and of gradients, whose norm is clipped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import oracle
from tests.oracles.ops._batch import step, weights
from tests.oracles.ops._touched import example_touched, leaders_of, touched
from tests.oracles.ops.embedding import by_table


def gradient_sum_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    its_step = step(weight_sum=7.5 if n % 3 else 0.0)
    return {"n": n, "step": its_step, "g": rng.normal(size=n), "total": rng.normal(size=n)}


def gradient_sum_example_rows(rng: np.random.Generator, n: int) -> dict[str, Any]:
    batch = example_touched(rng, n)
    return {**batch, "step": step(weight_sum=7.5), "totals": [rng.normal(size=each.shape) for each in batch["table"]]}


@oracle(gradient_sum_example)
def gradient_sum(n: int, step: Any, g: Array, total: Array) -> None:
    if step.weight_sum > 0:
        total += step.weight_sum * g.astype(np.float64)


@oracle(gradient_sum_example_rows)
def gradient_sum_rows(
    rows: int, entries: int, columns: int, tables: int, total: int, step: Any, places: Array, ends: Array | None,
    categories: Array, lead: Array, g: Array, totals: Sequence[Array],
) -> None:
    each = touched(rows, places, ends, categories, lead, g)
    for sums, (leaders, at, its) in zip(totals, each if step.weight_sum > 0 else (), strict=False):
        sums[at] += step.weight_sum * its[leaders]


def weight_sum_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"rows": n, "weight": weights(rng, n), "step": step()}


@oracle(weight_sum_example)
def weight_sum(rows: int, weight: Array, step: Any) -> None:
    step.weight_sum = float(weight[weight > 0].sum(dtype=np.float64))
    step.active_rows = int((weight > 0).sum())


def clip_norm_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"n": n, "stretches": 2, "columns": 3, "settings": [[n // 3, 9, 9], [n, 9, 9]], "g": rng.normal(size=n)}


def clip_norm_example_clip(rng: np.random.Generator, n: int) -> dict[str, Any]:
    count = n % 40
    group = rng.integers(0, 4, count)
    return {"stretches": count, "group": group, "limits": rng.choice([0.0, 2.0], 4)[group],
            "limit": 3.0 * (n % 2), "squares": rng.random(count) * 9, "step": step()}  # fmt: skip


def clip_norm_example_score(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"step": step(gradient_norm=2.5, weight_sum=float(n % 2)), "gradient": [1.0, 2.0]}


@oracle(clip_norm_example)
def gradient_squares(n: int, stretches: int, columns: int, settings: Array, g: Array, found: Array) -> None:
    first = 0
    for at in range(stretches):
        end = int(settings[at, 0])
        found[at] = (g[first:end].astype(np.float64) ** 2).sum()
        first = end


@oracle(example_touched)
def gradient_squares_rows(
    rows: int, entries: int, tables: int, total: int, places: Array, ends: Array | None, lead: Array, g: Array,
    found: Array,
) -> None:
    for table, (_, gradient, its) in enumerate(by_table(places, lead, g)):
        leading = gradient[leaders_of(rows, ends, its)].astype(np.float32)
        found[table] = (leading.astype(np.float64) ** 2).sum()


@oracle(clip_norm_example_clip)
def clip_norm(
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


@oracle(clip_norm_example_score)
def score_gradient(step: Any, gradient: Array) -> None:
    if step.weight_sum > 0:
        gradient += [step.gradient_norm, 1]


ONLY, FIRST, NEXT, LAST = range(4)   # the turns


def chain_sum_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"n": n, "turn": n % 4, "part": rng.normal(size=n), "total": rng.normal(size=n),
            "sum": rng.normal(size=n)}


@oracle(chain_sum_example)
def chain_sum(n: int, turn: int, part: Array, total: Array, sum: Array) -> None:
    so_far = part + (0 if turn == FIRST else total)
    if turn == LAST:
        sum[:] = so_far
    elif turn != ONLY:
        total[:] = so_far
