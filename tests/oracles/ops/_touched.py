"""The touched rows of tables: a batch's entries, of which the leading ones have a gradient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import bag, embedding


def leaders_of(rows: int, ends: Array | None, lead: Array) -> Array:
    """The entries of a table that lead."""
    used = rows if ends is None else int(ends[-1]) if rows else 0
    return np.flatnonzero(lead[:used] == np.arange(used))


def touched(
    rows: int, places: Array, ends: Array | None, categories: Array, lead: Array, g: Array
) -> Iterator[tuple[Array, Array, Array]]:
    """Yields for each table its leading entries, their rows, and the gradient [entries, dim]."""
    tables = embedding.by_table(places, lead, g)
    for (column, buckets, *_), (_, gradient, its) in zip(places.tolist(), tables, strict=True):
        leaders = leaders_of(rows, ends, its)
        yield leaders, embedding.bucket(categories, column, buckets)[leaders], gradient


def example_touched(rng: np.random.Generator, n: int, dim: int = 0) -> dict[str, Any]:
    """Three tables over rows of one entry each, the first of so many numbers a row; or one over rows of any number."""
    batch = {**embedding.example(rng, n, dim), "entries": n}
    if n % 2:
        bags = bag.example(rng, n)
        entries, buckets, dim = (bags[name] for name in ("entries", "buckets", "dim"))
        batch |= {"entries": entries, "columns": 1, "tables": 1, "total": dim, "ends": bags["ends"]}
        batch |= {"lead": bags["lead"][None], "categories": bags["index"][:, None]}
        batch |= {"places": embedding.places_of([(0, buckets, dim)]), "table": [rng.normal(size=(buckets, dim))]}
    return {**batch, "g": rng.normal(size=(batch["entries"], batch["total"]))}
