"""What all optimizers share: a kernel over a flat vector and <name>_rows over the touched rows of a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from streamtrain.compute.ops import bag, embedding
from streamtrain.compute.ops._batch import step
from streamtrain.compute.spec import Array, Op, changed, given, size, step_changed, value

# new parameter and new state from (step, gradient, parameter, state..., factors...)
Formula = Callable[..., tuple[Array, ...]]


_TOUCHED = (   # rows of a table
    size("rows"), size("entries"), size("columns"), size("column"), size("buckets"), size("dim"), step_changed(),
    given("ends", "i32", "rows", optional=True), given("categories", "i32", "entries", "columns"),
    given("lead", "i32", "entries"), given("g", "f64", "entries", "dim"),
)


def _touched(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Rows of one entry each, or of any number."""
    batch = {**embedding.example(rng, n), "entries": n}
    if n % 2:
        bags = bag.example(rng, n)
        batch |= {name: bags[name] for name in ("entries", "buckets", "dim", "ends", "lead")}
        batch |= {"categories": bags["index"][:, None], "columns": 1, "column": 0}
    return batch


def update(
    name: str, formula: Formula, state: tuple[str, ...], factors: dict[str, float], dtype: str = "f32"
) -> tuple[Op, Op]:
    """The two ops of an optimizer with this formula; `factors` are its plan constants, of
    `dtype`, with values to try."""

    def apply(step: Any, g: Array, held: list[Array], numbers: tuple[float, ...]) -> list[Array]:
        with np.errstate(all="ignore"):
            after = formula(step, g, *held, *numbers)
        step.not_finite |= int(not all(np.isfinite(a).all() for a in after))
        return list(after)

    def flat(n: int, step: Any, g: Array, *rest: Any) -> None:
        held, numbers = list(rest[: 1 + len(state)]), rest[1 + len(state) :]
        if step.weight_sum > 0:
            for kept, fresh in zip(held, apply(step, g, held, numbers), strict=True):
                kept[:] = fresh

    def touched(
        rows: int, entries: int, columns: int, column: int, buckets: int, dim: int, step: Any, ends: Array | None,
        categories: Array, lead: Array, g: Array, *rest: Any,
    ) -> None:
        held, numbers = list(rest[: 1 + len(state)]), rest[1 + len(state) :]
        used = rows if ends is None else int(ends[-1]) if rows else 0
        leaders = np.flatnonzero(lead[:used] == np.arange(used))
        at = embedding.bucket(categories, column, buckets)[leaders]
        if step.weight_sum > 0:
            for kept, fresh in zip(held, apply(step, g[leaders], [a[at] for a in held], numbers), strict=True):
                kept[at] = fresh

    def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
        held = {kept: abs(rng.normal(size=n)) for kept in state}
        return {"n": n, "step": step(), "g": rng.normal(size=n), "p": rng.normal(size=n), **held, **factors}

    def example_rows(rng: np.random.Generator, n: int) -> dict[str, Any]:
        batch = _touched(rng, n)
        table = (batch["buckets"], batch["dim"])
        held = {kept: abs(rng.normal(size=table)) for kept in ("p", *state)}
        gradient = rng.normal(size=(batch["entries"], batch["dim"]))
        return {**batch, "step": step(), "g": gradient, **held, **factors}

    values = tuple(value(factor, dtype) for factor in factors)
    vector, table = ("f32", "n"), ("f32", "buckets", "dim")
    return (
        Op(name, (size("n"), step_changed(), given("g", *vector), *(changed(kept, *vector) for kept in ("p", *state)),
                  *values), flat, example, each=("n",)),
        Op(f"{name}_rows",
           (*_TOUCHED, *(changed(kept, *table) for kept in ("p", *state)), *values),
           touched, example_rows, rows=("entries",)),
    )
