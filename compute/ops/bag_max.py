"""Bags of table rows: of each column the largest of as many as a row has entries, and the gradient of those."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops import bag
from streamtrain.compute.ops.embedding import bucket
from streamtrain.compute.spec import Array, Op, given, out, part, size

HELP = "the largest of table rows, column by column, by lists of indexes, scaled or not, and its gradient in row order"
_WINNER = ("winner", "i32", "rows", "dim")


def forward(
    rows: int, entries: int, buckets: int, dim: int, width: int, at: int, ends: Array, index: Array,
    scale: Array | None, table: Array, x: Array, winner: Array,
) -> None:
    found = bucket(index[:, None], 0, buckets)
    x[:, at : at + dim], winner[:] = 0, -1
    for row, (start, end) in enumerate(bag.spans(ends)):
        if start < end:
            values = table[found[start:end]] * (1 if scale is None else scale[start:end, None])
            winner[row] = start + values.argmax(0)
            x[row, at : at + dim] = values.max(0)


def gradient_of(
    rows: int, entries: int, dim: int, width: int, at: int, ends: Array, scale: Array | None, dx: Array, winner: Array,
    lead: Array, gradient: Array,
) -> None:
    for row, (start, end) in enumerate(bag.spans(ends)):
        for entry in range(start, end):
            factor = 1.0 if scale is None else float(scale[entry])
            part = np.where(winner[row] == entry, factor * dx[row, at : at + dim].astype(np.float64), 0)
            if lead[entry] == entry:
                gradient[entry] = part
            elif lead[entry] >= 0:
                gradient[lead[entry]] += part


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    args = bag.example(rng, n)
    scale = None if args["scale"] is None else args["scale"].astype(np.float32)
    table, winner = args["table"].astype(np.float32), np.zeros((n, args["dim"]), np.int32)
    forward(n, args["entries"], args["buckets"], args["dim"], args["width"], args["at"], args["ends"], args["index"],
            scale, table, np.zeros((n, args["width"])), winner)
    return {**args, "table": table, "scale": scale, "winner": winner}


OPS = (
    Op(
        "bag_max_forward",
        (*bag.BATCH, size("buckets"), size("dim"), size("width"), size("at"), bag.ENDS, bag.INDEX, bag.SCALE,
         given("table", "f32", "buckets", "dim"), part("x", "f32", "rows", "width"), out(*_WINNER)),
        forward, example, rows=("rows",),
    ),
    Op(
        "bag_max_gradient",
        (*bag.BATCH, size("dim"), size("width"), size("at"), bag.ENDS, bag.SCALE, given("dx", "f32", "rows", "width"),
         given(*_WINNER), given("lead", "i32", "entries"), part("gradient", "f64", "entries", "dim")),
        gradient_of, example, rows=("rows",),
    ),
)
