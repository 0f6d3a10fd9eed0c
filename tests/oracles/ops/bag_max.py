"""The oracle of compute/ops/bag_max.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.spec import Array
from tests.oracles.ops import Oracle, bag
from tests.oracles.ops.embedding import bucket


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


ORACLES = {
    "bag_max_forward": Oracle(forward, example),
    "bag_max_gradient": Oracle(gradient_of, example),
}
