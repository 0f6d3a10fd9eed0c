"""Gradients of several batches added up: of dense parameters, and of the rows of a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops import bag, embedding
from streamtrain.compute.ops._batch import step
from streamtrain.compute.spec import Array, Op, changed, given, size, step_read

HELP = "gradients of several batches, times the weights of their rows, added in double"


def reference(n: int, step: Any, g: Array, total: Array) -> None:
    if step.weight_sum > 0:
        total += step.weight_sum * g.astype(np.float64)


def of_rows(
    rows: int, entries: int, columns: int, column: int, buckets: int, dim: int, step: Any, ends: Array | None,
    categories: Array, lead: Array, g: Array, total: Array,
) -> None:
    used = rows if ends is None else int(ends[-1]) if rows else 0
    leaders = np.flatnonzero(lead[:used] == np.arange(used))
    if step.weight_sum > 0:
        total[embedding.bucket(categories, column, buckets)[leaders]] += step.weight_sum * g[leaders]


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    its_step = step(weight_sum=7.5 if n % 3 else 0.0)
    return {"n": n, "step": its_step, "g": rng.normal(size=n), "total": rng.normal(size=n)}


def example_rows(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Rows of one entry each, or of any number."""
    batch = {**embedding.example(rng, n), "entries": n}
    if n % 2:
        bags = bag.example(rng, n)
        batch |= {name: bags[name] for name in ("entries", "buckets", "dim", "ends", "lead")}
        batch |= {"categories": bags["index"][:, None], "columns": 1, "column": 0}
    g, total = (rng.normal(size=(batch[name], batch["dim"])) for name in ("entries", "buckets"))
    return {**batch, "step": step(weight_sum=7.5), "g": g, "total": total}


OPS = (
    Op("gradient_sum", (size("n"), step_read(), given("g", "f32", "n"), changed("total", "f64", "n")),
       reference, example, each=("n",)),
    Op("gradient_sum_rows",
       (size("rows"), size("entries"), size("columns"), size("column"), size("buckets"), size("dim"), step_read(),
        given("ends", "i32", "rows", optional=True), given("categories", "i32", "entries", "columns"),
        given("lead", "i32", "entries"), given("g", "f64", "entries", "dim"),
        changed("total", "f64", "buckets", "dim")),
       of_rows, example_rows, rows=("entries",)),
)  # fmt: skip
