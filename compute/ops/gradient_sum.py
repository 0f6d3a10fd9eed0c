"""Gradients of several batches added up: of dense parameters, and of the rows of tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import step
from streamtrain.compute.ops._touched import SIZES, TOUCHED, example_touched, touched
from streamtrain.compute.spec import Array, Op, changed, each, given, size, step_read

HELP = "gradients of several batches, times the weights of their rows, added in double"


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


OPS = (
    Op("gradient_sum", (size("n"), step_read(), given("g", "f32", "n"), changed("total", "f64", "n")),
       reference, example, each=("n",)),
    Op("gradient_sum_rows",
       (*SIZES, step_read(), *TOUCHED, each(changed("totals", "f64"), "tables")),
       of_rows, example_rows, rows=("tables", "entries")),
)  # fmt: skip
