"""The oracle of compute/ops/embedding.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from streamtrain.compute.ops.entry_table import place_of
from streamtrain.compute.ops.first_seen import slots_of
from streamtrain.compute.spec import Array
from tests.oracles.ops import oracle
from tests.oracles.ops._batch import weights


def bucket(categories: Array, column: int, buckets: int) -> Array:
    """The table rows of a batch; a bucket outside the table is row 0."""
    found = categories[:, column]
    return np.where((found >= 0) & (found < buckets), found, 0)


def example(rng: np.random.Generator, n: int, dim: int = 0) -> dict[str, Any]:
    """Three tables, of which two have their categories in the same column; the first of so many numbers a row."""
    dims, columns = (dim or 1 + n % 9, 3, 1 + n % 17), 3
    sizes = [(column, 1 + n % 50 + 3 * at, dim) for at, (column, dim) in enumerate(zip((1, 0, 1), dims, strict=True))]
    places, total = places_of(sizes), sum(dims)
    categories = rng.integers(-1, sizes[0][1] + 1, (n, columns)).astype(np.int32)
    weight, lead = weights(rng, n), np.zeros((3, n), np.int32)
    embedding_lead(n, columns, 3, 0, np.array(places), categories, weight, np.zeros(0), lead)
    return {
        "rows": n, "columns": columns, "tables": 3, "width": total + 5, "total": total, "first": n % 3,
        "places": places, "categories": categories, "x": np.zeros((n, total + 5)),
        "table": [rng.normal(size=(buckets, dim)) for _, buckets, dim in sizes],
        "weight": weight, "slots": slots_of(n), "lead": lead, "dx": rng.normal(size=(n, total + 5)),
        "gradient": np.zeros((n, total)),
    }


@oracle(example)
def embedding_forward(
    rows: int, columns: int, tables: int, width: int, places: Array, categories: Array, table: Sequence[Array],
    x: Array,
) -> None:
    for (column, buckets, dim, at, _), content in zip(places.tolist(), table, strict=True):
        x[:, at : at + dim] = content[bucket(categories, column, buckets)]


@oracle(example)
def embedding_lead(
    rows: int, columns: int, tables: int, slots: int, places: Array, categories: Array, weight: Array, seen: Array,
    lead: Array,
) -> None:
    for (column, buckets, *_), its in zip(places.tolist(), lead, strict=True):
        first: dict[int, int] = {}
        for row, index in enumerate(bucket(categories, column, buckets)):
            its[row] = first.setdefault(int(index), row) if weight[row] > 0 else -1


@oracle(example)
def embedding_gradient(
    rows: int, tables: int, total: int, width: int, first: int, places: Array, dx: Array, lead: Array, gradient: Array
) -> None:
    for at, found, its in by_table(places, lead, gradient):
        dim = found.shape[1]
        for row in range(rows):
            given_columns = dx[row, at - first : at - first + dim]
            if its[row] == row:
                found[row] = given_columns
            elif its[row] >= 0:
                found[its[row]] += given_columns


def by_table(places: Array, lead: Array, gradient: Array) -> Iterator[tuple[int, Array, Array]]:
    """Yields for each table its first column in the input matrix, its gradient [entries, dim] and which entries lead
    in it."""
    entries, flat = lead.shape[1], gradient.reshape(-1)
    for (_, _, dim, at, before), its in zip(places.tolist(), lead, strict=True):
        yield at, flat[before * entries : (before + dim) * entries].reshape(entries, dim), its


def places_of(sizes: Sequence[tuple[int, int, int]], at: int = 2) -> list[list[int]]:
    """Returns the places of tables given by column, rows and numbers. They lie side by side from column `at` of the
    input matrix on."""
    before = accumulate((dim for _, _, dim in sizes), initial=0)
    return [place_of(*its, at + place, place) for its, place in zip(sizes, before, strict=False)]
