"""Tables of vectors by category: gather, the leading row of each bucket in a batch, gradient of the touched rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops._batch import weights
from streamtrain.compute.ops.first_seen import slots_of
from streamtrain.compute.spec import Array, Op, given, out, part, scratch, size

HELP = "rows of a table by category, and their gradient in row order"
BATCH = (size("rows"), size("columns"), size("column"), size("buckets"))
CATEGORIES = given("categories", "i32", "rows", "columns")


def bucket(categories: Array, column: int, buckets: int) -> Array:
    """The table rows of a batch; a bucket outside the table is row 0."""
    found = categories[:, column]
    return np.where((found >= 0) & (found < buckets), found, 0)


def forward(
    rows: int, columns: int, column: int, buckets: int, dim: int, width: int, at: int, categories: Array,
    table: Array, x: Array,
) -> None:
    x[:, at : at + dim] = table[bucket(categories, column, buckets)]


def lead_of(
    rows: int, columns: int, column: int, buckets: int, slots: int, categories: Array, weight: Array, seen: Array,
    lead: Array,
) -> None:
    first: dict[int, int] = {}
    for row, index in enumerate(bucket(categories, column, buckets)):
        lead[row] = first.setdefault(int(index), row) if weight[row] > 0 else -1


def gradient_of(rows: int, dim: int, width: int, at: int, dx: Array, lead: Array, gradient: Array) -> None:
    for row in range(rows):
        if lead[row] == row:
            gradient[row] = dx[row, at : at + dim]
        elif lead[row] >= 0:
            gradient[lead[row]] += dx[row, at : at + dim]


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    dim, buckets, columns = 1 + n % 9, 1 + n % 50, 3
    categories = rng.integers(-1, buckets + 1, (n, columns)).astype(np.int32)
    weight = weights(rng, n)
    lead = np.zeros(n, np.int32)
    lead_of(n, columns, 1, buckets, 0, categories, weight, np.zeros(0), lead)
    return {
        "rows": n, "columns": columns, "column": 1, "buckets": buckets, "dim": dim, "width": dim + 5, "at": 2,
        "categories": categories, "table": rng.normal(size=(buckets, dim)), "x": np.zeros((n, dim + 5)),
        "weight": weight, "slots": slots_of(n), "lead": lead, "dx": rng.normal(size=(n, dim + 5)),
        "gradient": np.zeros((n, dim)),
    }


OPS = (
    Op(
        "embedding_forward",
        (*BATCH, size("dim"), size("width"), size("at"), CATEGORIES, given("table", "f32", "buckets", "dim"),
         part("x", "f32", "rows", "width")),
        forward, example, rows=("rows",), tiles="rows",
    ),
    Op(
        "embedding_lead",
        (*BATCH, size("slots"), CATEGORIES, given("weight", "f32", "rows"), scratch("seen", "i64", "slots"),
         out("lead", "i32", "rows")),
        lead_of, example, each=("rows",),
    ),
    Op(
        "embedding_gradient",
        (size("rows"), size("dim"), size("width"), size("at"), given("dx", "f32", "rows", "width"),
         given("lead", "i32", "rows"), part("gradient", "f64", "rows", "dim")),
        gradient_of, example, each=("rows", "dim"),
    ),
)
