"""The oracles of bags: sums, means and maxima of a table's rows over the entries of a row."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamtrain.compute.ops.first_seen import slots_of
from streamtrain.compute.spec import Array
from tests.oracles.ops import oracle
from tests.oracles.ops._batch import weights
from tests.oracles.ops.embedding import bucket


def spans(ends: Array) -> list[tuple[int, int]]:
    """Returns for each row the first of its entries, and the one behind them."""
    return list(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)) if len(ends) else []


def _scaled(scale: Array | None, start: int, end: int, mean: int) -> Array:
    factors = np.ones(end - start) if scale is None else scale[start:end].astype(np.float64)
    return factors / len(factors) if mean and len(factors) else factors


def example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Rows of about 3 entries, some of none; more room than entries."""
    dim, buckets = 1 + n % 20, 1 + n % 50
    ends = np.cumsum(rng.integers(0, 7, n)).astype(np.int32)
    used = int(ends[-1]) if n else 0
    entries = used + n % 5
    index = rng.integers(-1, buckets + 1, entries).astype(np.int32)
    weight, lead = weights(rng, n), np.full(entries, -1, np.int32)
    bag_lead(n, entries, buckets, 0, ends, index, weight, np.zeros(0), lead)
    return {
        "rows": n, "entries": entries, "buckets": buckets, "dim": dim, "width": dim + 5, "at": 2, "ends": ends,
        "index": index, "scale": rng.normal(size=entries) if n % 2 else None, "mean": n % 3 % 2, "adds": n // 2 % 2,
        "table": rng.normal(size=(buckets, dim)), "x": rng.normal(size=(n, dim + 5)), "weight": weight,
        "slots": slots_of(entries), "lead": lead, "dx": rng.normal(size=(n, dim + 5)),
        "gradient": np.zeros((entries, dim)),
    }


@oracle(example)
def bag_forward(
    rows: int, entries: int, buckets: int, dim: int, width: int, at: int, ends: Array, index: Array,
    scale: Array | None, table: Array, mean: int, adds: int, x: Array,
) -> None:
    found = bucket(index[:, None], 0, buckets)
    for row, (start, end) in enumerate(spans(ends)):
        bag = _scaled(scale, start, end, mean) @ table[found[start:end]].astype(np.float64)
        x[row, at : at + dim] = x[row, at : at + dim] + bag if adds else bag


@oracle(example)
def bag_lead(
    rows: int, entries: int, buckets: int, slots: int, ends: Array, index: Array, weight: Array, seen: Array,
    lead: Array,
) -> None:
    first: dict[int, int] = {}
    found = bucket(index[:, None], 0, buckets)
    for row, (start, end) in enumerate(spans(ends)):
        for entry in range(start, end):
            lead[entry] = first.setdefault(int(found[entry]), entry) if weight[row] > 0 else -1


@oracle(example)
def bag_gradient(
    rows: int, entries: int, dim: int, width: int, at: int, ends: Array, scale: Array | None, dx: Array, lead: Array,
    mean: int, gradient: Array,
) -> None:
    for row, (start, end) in enumerate(spans(ends)):
        for entry, factor in zip(range(start, end), _scaled(scale, start, end, mean), strict=True):
            part = factor * dx[row, at : at + dim].astype(np.float64)
            if lead[entry] == entry:
                gradient[entry] = part
            elif lead[entry] >= 0:
                gradient[lead[entry]] += part


def bag_max_example(rng: np.random.Generator, n: int) -> dict[str, Any]:
    args = example(rng, n)
    scale = None if args["scale"] is None else args["scale"].astype(np.float32)
    table, winner = args["table"].astype(np.float32), np.zeros((n, args["dim"]), np.int32)
    given = [args[name] for name in ("entries", "buckets", "dim", "width", "at", "ends", "index")]
    bag_max_forward(n, *given, scale, table, np.zeros((n, args["width"])), winner)
    return {**args, "table": table, "scale": scale, "winner": winner}


@oracle(bag_max_example)
def bag_max_forward(
    rows: int, entries: int, buckets: int, dim: int, width: int, at: int, ends: Array, index: Array,
    scale: Array | None, table: Array, x: Array, winner: Array,
) -> None:
    found = bucket(index[:, None], 0, buckets)
    x[:, at : at + dim], winner[:] = 0, -1
    for row, (start, end) in enumerate(spans(ends)):
        if start < end:
            values = table[found[start:end]] * (1 if scale is None else scale[start:end, None])
            winner[row] = start + values.argmax(0)
            x[row, at : at + dim] = values.max(0)


@oracle(bag_max_example)
def bag_max_gradient(
    rows: int, entries: int, dim: int, width: int, at: int, ends: Array, scale: Array | None, dx: Array, winner: Array,
    lead: Array, gradient: Array,
) -> None:
    for row, (start, end) in enumerate(spans(ends)):
        for entry in range(start, end):
            factor = 1.0 if scale is None else float(scale[entry])
            part = np.where(winner[row] == entry, factor * dx[row, at : at + dim].astype(np.float64), 0)
            if lead[entry] == entry:
                gradient[entry] = part
            elif lead[entry] >= 0:
                gradient[lead[entry]] += part
