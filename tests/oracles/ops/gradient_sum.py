"""The oracle of compute/ops/gradient_sum.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle
from tests.oracles.ops._batch import step
from tests.oracles.ops._touched import example_touched, touched


def reference(n: int, step: Any, g: Array, total: Array) -> None:
    if step.weight_sum > 0:
        total += step.weight_sum * g.astype(np.float64)


def of_rows(
    rows: int, entries: int, columns: int, tables: int, total: int, step: Any, places: Array, ends: Array | None,
    categories: Array, lead: Array, g: Array, totals: Sequence[Array],
) -> None:
    each = touched(rows, places, ends, categories, lead, g)
    for sums, (leaders, at, its) in zip(totals, each if step.weight_sum > 0 else (), strict=False):
        sums[at] += step.weight_sum * its[leaders]


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    its_step = step(weight_sum=7.5 if n % 3 else 0.0)
    return {"n": n, "step": its_step, "g": rng.normal(size=n), "total": rng.normal(size=n)}


def example_rows(rng: np.random.Generator, n: int) -> dict[str, Any]:
    batch = example_touched(rng, n)
    return {**batch, "step": step(weight_sum=7.5), "totals": [rng.normal(size=each.shape) for each in batch["table"]]}


ORACLES = {
    "gradient_sum": Oracle(reference, example),
    "gradient_sum_rows": Oracle(of_rows, example_rows),
}
